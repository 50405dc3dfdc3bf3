#include "serve/text/completion_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {
namespace {

constexpr std::int64_t kUsualTokens = 16, kMostAlternatives = 20;  // the former as OpenAI's
constexpr std::size_t kMostStopTexts = 16, kMostStopBytes = 4096;  // each text of a request has a copy
constexpr double kMostTemperature = 100;

std::string valid_text(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  StreamDecoder decoder(tokenizer);
  std::string text = decoder.push_bytes(tokenizer.decode(ids));
  return text + decoder.finish();
}

void add_prompt(CompletionRequest& request, const nlohmann::json& prompt, const Tokenizer& tokenizer) {
  if (prompt.is_string()) {
    request.prompt_texts.push_back(prompt.get<std::string>());
    try {
      request.prompts.push_back(prompt_tokens(tokenizer, request.prompt_texts.back()));
    } catch (const UserError& error) {
      refuse_field("prompt", "{}", error.what());
    }
  } else {
    request.prompts.push_back(token_ids(prompt, tokenizer.vocab_size(), "prompt"));
    request.prompt_texts.push_back(valid_text(tokenizer, request.prompts.back()));
  }
}

void read_prompts(CompletionRequest& request, RequestFields& fields, const Tokenizer& tokenizer, std::size_t most) {
  const nlohmann::json* const prompt = fields.find("prompt");
  const nlohmann::json none = "";
  const nlohmann::json& given = prompt == nullptr ? none : *prompt;
  const bool is_list = given.is_array() && !given.empty() && std::ranges::all_of(given, [](const nlohmann::json& one) {
                         return one.is_string() || one.is_array();
                       });
  const bool is_one = given.is_string() || (given.is_array() && !is_list);
  if (!is_one && !is_list) {
    refuse_field("prompt", "prompt must be a string, a list of strings, a list of token ids, or a list of such lists");
  }
  if (is_list && given.size() > most) {
    refuse_field("prompt", "prompt has {} texts; this server takes {} at a time", given.size(), most);
  }
  if (is_one) return add_prompt(request, given, tokenizer);
  for (const nlohmann::json& one : given) add_prompt(request, one, tokenizer);
}

void read_stream(CompletionRequest& request, RequestFields& fields) {
  request.stream = fields.boolean("stream", false);
  const nlohmann::json* const options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) refuse_field("stream_options", "stream_options must be an object");
  if (!request.stream) refuse_field("stream_options", "stream_options needs stream");
  RequestFields inner(*options);
  request.includes_usage = inner.boolean("include_usage", false);
  inner.refuse_unless("include_obfuscation", {false});
  inner.refuse_unknown();
}

std::vector<LogitBias> read_biases(RequestFields& fields, const Tokenizer& tokenizer) {
  constexpr const char* kKey = "logit_bias";
  const nlohmann::json* const given = fields.find(kKey);
  std::vector<LogitBias> biases;
  if (given == nullptr) return biases;
  if (!given->is_object()) refuse_field(kKey, "logit_bias must be an object of token ids and numbers");
  for (const auto& [key, value] : given->items()) {
    std::int32_t id = -1;
    std::from_chars(key.data(), key.data() + key.size(), id);
    if (id < 0 || id >= tokenizer.vocab_size() || std::to_string(id) != key) {
      refuse_field(kKey, "logit_bias has '{}'; a token id must be a whole number from 0 to {}", key,
                   tokenizer.vocab_size() - 1);
    }
    if (!value.is_number() || !(std::abs(value.get<double>()) <= kMostBias)) {
      refuse_field(kKey, "logit_bias of {} must be a number from {} to {}", key, -kMostBias, kMostBias);
    }
    biases.push_back({.token = id, .bias = value.get<double>()});
  }
  return biases;
}

void read_settings(CompletionRequest& request, RequestFields& fields, const Tokenizer& tokenizer,
                   const CompletionLimits& limits) {
  SamplingSettings& sampling = request.settings.sampling;
  sampling.temperature = fields.number("temperature", 1, 0, kMostTemperature);
  sampling.top_p = fields.number("top_p", 1, 0, 1);
  // OpenAI takes 0, which keeps the likeliest token alone.
  if (sampling.top_p == 0) sampling.top_p = std::numeric_limits<double>::min();
  sampling.top_k = fields.integer("top_k", 0, -1, std::numeric_limits<std::int32_t>::max());
  sampling.top_k = std::max<std::int64_t>(0, sampling.top_k);
  sampling.repetition_penalty = fields.number("repetition_penalty", 1, kLeastPenalty, kMostPenalty);
  sampling.presence_penalty = fields.number("presence_penalty", 0, -kMostAdditivePenalty, kMostAdditivePenalty);
  sampling.frequency_penalty = fields.number("frequency_penalty", 0, -kMostAdditivePenalty, kMostAdditivePenalty);
  sampling.biases = read_biases(fields, tokenizer);
  const std::int64_t seed =
      fields.integer("seed", -1, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  sampling.seed = fields.find("seed") != nullptr ? static_cast<std::uint64_t>(seed) : std::random_device()();
  request.settings.tokens = tokenizer.vocab_size();
  if (fields.boolean("ignore_eos", false)) return;
  request.settings.stop = tokenizer.end_of_text();
  request.settings.other_stops = limits.ends;
}

}  // namespace

std::vector<TextJob> CompletionRequest::jobs(const CompletionLimits& limits) const {
  std::vector<TextJob> all;
  for (std::size_t number = 0; number < prompts.size(); ++number) {
    TextJob job{.request = {.text = {.prompt = prompts[number], .number = static_cast<std::uint32_t>(number)},
                            .settings = settings,
                            .alternatives = alternatives.value_or(0)},
                .stop_texts = stop_texts};
    const std::int64_t room = limits.positions - std::ssize(prompts[number]) + 1;
    job.request.settings.max_new_tokens = max_tokens.value_or(std::min(kUsualTokens, room));
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      job.request.text.sample = static_cast<std::uint32_t>(sample);
      all.push_back(job);
    }
  }
  return all;
}

CompletionRequest read_completion_request(const nlohmann::json& json, const Tokenizer& tokenizer,
                                          const CompletionLimits& limits) {
  RequestFields fields(json);
  CompletionRequest request;
  fields.ignore_account();
  fields.refuse_unless("suffix", {""});
  read_settings(request, fields, tokenizer, limits);
  read_stream(request, fields);
  const auto most = static_cast<std::int64_t>(limits.texts);
  request.returned = fields.integer("n", 1, 1, most);
  request.samples = fields.integer("best_of", request.returned, request.returned, most);
  if (request.stream && request.samples > request.returned) {
    refuse_field("best_of", "best_of above n chooses among whole texts, which no stream can; leave one of them out");
  }
  request.echo = fields.boolean("echo", false);
  request.stop_texts = fields.texts("stop", kMostStopTexts);
  std::erase(request.stop_texts, "");
  for (const std::string& stop : request.stop_texts) {
    if (stop.size() <= kMostStopBytes) continue;
    refuse_field("stop", "a text of stop has {} bytes; {} are the most", stop.size(), kMostStopBytes);
  }
  if (fields.find("logprobs") != nullptr) request.alternatives = fields.integer("logprobs", 0, 0, kMostAlternatives);
  if (fields.find("max_tokens") != nullptr) request.max_tokens = fields.integer("max_tokens", 0, 0, 1 << 30);
  request.settings.log_probabilities = request.alternatives || request.samples > request.returned;
  request.settings.prompt_log_probabilities = request.alternatives.has_value() && request.echo;
  read_prompts(request, fields, tokenizer, limits.texts);
  fields.refuse_unknown();
  if (request.prompts.size() * static_cast<std::size_t>(request.samples) > limits.texts) {
    const char* const key = request.samples > request.returned ? "best_of" : "n";
    refuse_field(key, "{} prompts with {} {} are more texts than the {} that this server takes at a time",
                 request.prompts.size(), key, request.samples, limits.texts);
  }
  for (const std::vector<std::int32_t>& prompt : request.prompts) {
    // The last new token is not read, so it needs no position.
    const std::int64_t tokens = std::ssize(prompt),
                       all = tokens + std::max<std::int64_t>(0, request.max_tokens.value_or(1) - 1);
    if (all <= limits.positions) continue;
    throw ApiError(
        400,
        fmt::format("the model's context holds {} tokens, and a prompt has {}{}; shorten it{}", limits.positions,
                    tokens, request.max_tokens ? fmt::format(", with max_tokens {}", *request.max_tokens) : "",
                    request.max_tokens ? ", or ask for fewer" : ""),
        "prompt", "context_length_exceeded");
  }
  return request;
}

}  // namespace teratron
