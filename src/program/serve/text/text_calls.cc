#include "serve/text/text_calls.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace teratron {
namespace {

using Json = nlohmann::json;

// Names every field, so that a new one does not compile until it is sent to the other ranks.
Json json_of(const TextJob& job) {
  const auto& [request, stop_texts] = job;
  const auto& [text, settings, alternatives] = request;
  const auto& [prompt, number, sample] = text;
  const auto& [sampling, max_new_tokens, stop, other_stops, tokens, scores, scores_prompt] = settings;
  const auto& [temperature, top_k, top_p, seed, repetition_penalty, presence_penalty, frequency_penalty, biases] =
      sampling;
  Json bias_list = Json::array();
  for (const auto& [token, bias] : biases) bias_list.push_back({token, bias});
  return {{"prompt", prompt},
          {"number", number},
          {"sample", sample},
          {"temperature", temperature},
          {"top_k", top_k},
          {"top_p", top_p},
          {"seed", seed},
          {"repetition_penalty", repetition_penalty},
          {"presence_penalty", presence_penalty},
          {"frequency_penalty", frequency_penalty},
          {"biases", std::move(bias_list)},
          {"max_new_tokens", max_new_tokens},
          {"stop", stop ? Json(*stop) : Json()},
          {"other_stops", other_stops},
          {"tokens", tokens},
          {"scores", scores},
          {"scores_prompt", scores_prompt},
          {"alternatives", alternatives},
          {"stop_texts", stop_texts}};
}

TextJob job_of(const Json& json) {
  TextJob job;
  GeneratorRequest& request = job.request;
  GenerationSettings& settings = request.settings;
  SamplingSettings& sampling = settings.sampling;
  json.at("prompt").get_to(request.text.prompt);
  json.at("number").get_to(request.text.number);
  json.at("sample").get_to(request.text.sample);
  json.at("temperature").get_to(sampling.temperature);
  json.at("top_k").get_to(sampling.top_k);
  json.at("top_p").get_to(sampling.top_p);
  json.at("seed").get_to(sampling.seed);
  json.at("repetition_penalty").get_to(sampling.repetition_penalty);
  json.at("presence_penalty").get_to(sampling.presence_penalty);
  json.at("frequency_penalty").get_to(sampling.frequency_penalty);
  for (const Json& bias : json.at("biases")) {
    sampling.biases.push_back({.token = bias.at(0).get<std::int32_t>(), .bias = bias.at(1).get<double>()});
  }
  json.at("max_new_tokens").get_to(settings.max_new_tokens);
  if (!json.at("stop").is_null()) settings.stop = json.at("stop").get<std::int32_t>();
  json.at("other_stops").get_to(settings.other_stops);
  json.at("tokens").get_to(settings.tokens);
  json.at("scores").get_to(settings.log_probabilities);
  json.at("scores_prompt").get_to(settings.prompt_log_probabilities);
  json.at("alternatives").get_to(request.alternatives);
  json.at("stop_texts").get_to(job.stop_texts);
  return job;
}

// CBOR, which keeps numbers to the last bit. Most steps have no calls, and no bytes.
std::string bytes_of(const TextCalls& calls) {
  if (calls.arrivals.empty() && calls.cancelled.empty() && !calls.stops) return "";
  Json arrivals = Json::array();
  for (const TextCalls::Arrival& arrival : calls.arrivals) {
    Json jobs = Json::array();
    for (const TextJob& job : arrival.jobs) jobs.push_back(json_of(job));
    arrivals.push_back({{"number", arrival.number}, {"jobs", std::move(jobs)}});
  }
  std::string bytes;
  Json::to_cbor({{"arrivals", std::move(arrivals)}, {"cancelled", calls.cancelled}, {"stops", calls.stops}}, bytes);
  return bytes;
}

TextCalls calls_of(const std::string& bytes) {
  TextCalls calls;
  if (bytes.empty()) return calls;
  const Json json = Json::from_cbor(bytes);
  for (const Json& one : json.at("arrivals")) {
    TextCalls::Arrival& arrival = calls.arrivals.emplace_back();
    one.at("number").get_to(arrival.number);
    for (const Json& job : one.at("jobs")) arrival.jobs.push_back(job_of(job));
  }
  json.at("cancelled").get_to(calls.cancelled);
  json.at("stops").get_to(calls.stops);
  return calls;
}

}  // namespace

TextCalls share_calls(Communicator& group, TextCalls calls) {
  if (group.size() == 1) return calls;
  if (group.rank() != 0) return calls_of(group.all_gather_host(std::string()).front());
  group.all_gather_host(bytes_of(calls));
  return calls;
}

}  // namespace teratron
