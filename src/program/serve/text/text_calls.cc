#include "serve/text/text_calls.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace teratron {
namespace {

using Json = nlohmann::json;

Json json_of(const TextJob& job) {
  const GeneratorRequest& request = job.request;
  const GenerationSettings& settings = request.settings;
  const SamplingSettings& sampling = settings.sampling;
  return {{"prompt", request.text.prompt},
          {"number", request.text.number},
          {"sample", request.text.sample},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"seed", sampling.seed},
          {"repetition_penalty", sampling.repetition_penalty},
          {"max_new_tokens", settings.max_new_tokens},
          {"stop", settings.stop ? Json(*settings.stop) : Json()},
          {"tokens", settings.tokens},
          {"scores", settings.log_probabilities},
          {"scores_prompt", settings.prompt_log_probabilities},
          {"alternatives", request.alternatives},
          {"stop_texts", job.stop_texts}};
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
  json.at("max_new_tokens").get_to(settings.max_new_tokens);
  if (!json.at("stop").is_null()) settings.stop = json.at("stop").get<std::int32_t>();
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
