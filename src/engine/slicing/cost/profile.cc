#include "slicing/cost/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/json_fields.h"

namespace teratron::slicing {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "teratron-profile-4";
constexpr std::int64_t kMost = std::int64_t{1} << 40;  // of any number in a key
constexpr double kLongest = 1e12;                      // milliseconds of anything
constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMostMicroBatches = 4096;  // of an iteration that was measured: twice the stages

// The key's fields, once: text(name, member), number(name, member).
template <class Key, class Text, class Number>
void visit(Key& key, const Text& text, const Number& number) {
  text("processor", key.processor);
  text("backend", key.backend);
  text("ranks", key.ranks);
  text("dtype", key.dtype);
  text("recompute", key.recompute);
  text("dropout", key.dropout);
  text("cell_layers", key.cell_layers);
  text("settings", key.settings);
  text("layer", key.layer);
  number("threads", key.threads);
  number("hidden_size", key.hidden_size);
  number("ffn_hidden_size", key.ffn_hidden_size);
  number("attention_heads", key.attention_heads);
  number("vocabulary", key.vocabulary);
  number("tensor_parallel", key.tensor_parallel);
  number("stages", key.stages);
  number("data_parallel", key.data_parallel);
  number("sequence_parallel", key.sequence_parallel);
  number("sharded_optimizer", key.sharded_optimizer);
  number("sequences", key.sequences);
  number("tokens", key.tokens);
  number("logits_chunk", key.logits_chunk);
}

Json json_of(const CostModel& model, const RelativeError& error, const RelativeError& noise) {
  return {{"lengths", model.lengths},
          {"milliseconds_without_context", model.without_context},
          {"context_coefficients", model.context},
          {"mean_relative_error", error.mean},
          {"worst_relative_error", error.worst},
          {"mean_relative_noise", noise.mean},
          {"worst_relative_noise", noise.worst}};
}

Json json_of(const StageCosts& stage) {
  Json json = {{"forward", json_of(stage.forward, stage.forward_error, stage.forward_noise)},
               {"backward", json_of(stage.backward, stage.backward_error, stage.backward_noise)}};
  if (stage.parts) {
    json["backward_parts"] = {{"weights_milliseconds", stage.parts->weights.fixed},
                              {"weights_milliseconds_per_token", stage.parts->weights.per_token},
                              {"more_milliseconds", stage.parts->more.fixed},
                              {"more_milliseconds_per_token", stage.parts->more.per_token}};
  }
  return json;
}

std::vector<double> numbers(const JsonFields& fields, std::string_view name) {
  std::vector<double> values;
  const nlohmann::json& list = fields[name];
  if (!list.is_array()) fields.throw_not(name, "a list of numbers");
  for (const nlohmann::json& value : list) {
    if (!value.is_number()) fields.throw_not(name, "a list of numbers");
    values.push_back(value.get<double>());
  }
  return values;
}

CostModel model_from_json(const JsonFields& fields) {
  CostModel model;
  model.without_context = numbers(fields, "milliseconds_without_context");
  for (const double time : model.without_context) {
    if (!(time > 0 && time < kLongest)) fields.throw_not("milliseconds_without_context", "a list of times above 0");
  }
  for (const double length : numbers(fields, "lengths")) {
    const double last = model.lengths.empty() ? 0 : static_cast<double>(model.lengths.back());
    if (!(length > last && length <= kMostTokens)) fields.throw_not("lengths", "a list of lengths that grow");
    model.lengths.push_back(static_cast<std::int64_t>(length));
    if (static_cast<double>(model.lengths.back()) != length) fields.throw_not("lengths", "a list of whole numbers");
  }
  if (model.lengths.empty() || model.lengths.size() != model.without_context.size()) {
    fields.throw_not("lengths", "a list with a length for each of milliseconds_without_context");
  }
  const std::vector<double> context = numbers(fields, "context_coefficients");
  const bool are_times = std::ranges::all_of(context, [](double value) { return std::abs(value) < kLongest; });
  if (context.size() != model.context.size() || !are_times) {
    fields.throw_not("context_coefficients", "a list of four times");
  }
  std::copy(context.begin(), context.end(), model.context.begin());
  return model;
}

RelativeError error_from_json(const JsonFields& fields) {
  return {.mean = fields.number("mean_relative_error"), .worst = fields.number("worst_relative_error")};
}

double time(const JsonFields& fields, std::string_view name) {
  const double value = fields.number(name);
  if (!(value >= 0 && value < kLongest)) fields.throw_not(name, "a time of at least 0");
  return value;
}

double positive(const JsonFields& fields, std::string_view name, double bound, std::string_view what) {
  const double value = fields.number(name);
  if (!(value > 0 && value < bound)) fields.throw_not(name, what);
  return value;
}

double factor(const JsonFields& fields, std::string_view name) {
  return positive(fields, name, 1e6, "a factor above 0");
}

// A list of objects.
const nlohmann::json& objects(const JsonFields& fields, std::string_view name) {
  const nlohmann::json& list = fields[name];
  const bool right = list.is_array() && std::ranges::all_of(list, [](const auto& one) { return one.is_object(); });
  if (!right) fields.throw_not(name, "a list of objects");
  return list;
}

// Profiles of earlier versions have neither noise nor parts.
RelativeError noise_from_json(const JsonFields& fields) {
  if (!fields.has("mean_relative_noise")) return {};
  return {.mean = fields.number("mean_relative_noise"), .worst = fields.number("worst_relative_noise")};
}

BackwardParts parts_from_json(const JsonFields& fields) {
  const auto number = [&](const std::string& name) {  // may be negative, as a fit may say of short slices
    const double value = fields.number(name);
    if (!(std::abs(value) < kLongest)) fields.throw_not(name, "a time");
    return value;
  };
  const auto linear = [&](const std::string& name) {
    return LinearTime{.fixed = number(name), .per_token = number(name + "_per_token")};
  };
  return {.weights = linear("weights_milliseconds"), .more = linear("more_milliseconds")};
}

StageCosts stage_from_json(const JsonFields& fields, const std::filesystem::path& path) {
  const JsonFields forward(fields.object("forward"), path), backward(fields.object("backward"), path);
  StageCosts costs{.forward = model_from_json(forward),
                   .backward = model_from_json(backward),
                   .forward_error = error_from_json(forward),
                   .backward_error = error_from_json(backward),
                   .forward_noise = noise_from_json(forward),
                   .backward_noise = noise_from_json(backward)};
  if (fields.has("backward_parts")) {
    costs.parts = parts_from_json(JsonFields(fields.object("backward_parts"), path));
  }
  return costs;
}

// `longest`: tokens of the longest slice that was measured.
MeasuredIteration iteration_from_json(const JsonFields& fields, std::int64_t longest) {
  MeasuredIteration iteration{.micro_batches = static_cast<int>(fields.integer("micro_batches", 1, kMostMicroBatches)),
                              .held_out = fields.boolean("held_out"),
                              .pipeline = positive(fields, "pipeline_milliseconds", kLongest, "a time above 0")};
  for (const double length : numbers(fields, "slices")) {
    if (!(length >= 1 && length <= static_cast<double>(longest) && std::floor(length) == length)) {
      fields.throw_not("slices", fmt::format("a list of whole numbers from 1 to {}", longest));
    }
    iteration.slices.push_back(static_cast<std::int64_t>(length));
  }
  if (iteration.slices.empty()) fields.throw_not("slices", "a list of one slice or more");
  return iteration;
}

void require_alike(const Profile& profile, const std::filesystem::path& path) {
  const auto refuse = [&](std::string_view what) {
    throw_user_error("{}: {}; measure again with 'teratron profile'", path.string(), what);
  };
  if (profile.stages.empty() || static_cast<std::int64_t>(profile.stages.size()) != profile.key.stages) {
    refuse(fmt::format("'stages' lists {}, but it was measured for {}", counted(std::ssize(profile.stages), "stage"),
                       profile.key.stages));
  }
  for (const StageCosts& stage : profile.stages) {
    for (const CostModel* model : {&stage.forward, &stage.backward}) {
      if (model->lengths != profile.stages.front().forward.lengths) {
        refuse("forward and backward of all stages were measured for different lengths");
      }
    }
  }
}

}  // namespace

pipeline::PassTimes StageCosts::times(std::int64_t length, std::int64_t context) const {
  const double whole = backward.milliseconds(length, context);
  pipeline::PassTimes times = pipeline::PassTimes::even_parts(forward.milliseconds(length, context), whole);
  if (!parts) return times;
  times.backward_weight = std::max(0.0, parts->weights.of(length));
  times.backward_input = std::max(0.0, whole + std::max(0.0, parts->more.of(length)) - times.backward_weight);
  return times;
}

std::string text_of(const ProfileKey& key) {
  std::vector<std::string> fields;
  visit(
      key,
      [&](const char* name, const std::string& value) {
        if (!value.empty()) fields.push_back(fmt::format("{} {:?}", name, value));
      },
      [&](const char* name, std::int64_t value) {
        if (value != 0) fields.push_back(fmt::format("{} {}", name, value));
      });
  return fmt::format("{}", fmt::join(fields, ", "));
}

std::string to_json(const Profile& profile) {
  Json key = Json::object(), stages = Json::array(), iterations = Json::array();
  const auto put = [&](const char* name, const auto& value) { key[name] = value; };
  visit(profile.key, put, put);
  for (const StageCosts& stage : profile.stages) {
    stages.push_back(json_of(stage));
  }
  for (const MeasuredIteration& iteration : profile.iterations) {
    iterations.push_back({{"slices", iteration.slices},
                          {"micro_batches", iteration.micro_batches},
                          {"held_out", iteration.held_out},
                          {"pipeline_milliseconds", iteration.pipeline}});
  }
  return Json{{"format", kFormat},
              {"measured_for", key},
              {"stages", stages},
              {"pace_alone", profile.pace.alone},
              {"pace_together", profile.pace.together},
              {"transfer_latency_milliseconds", profile.transfer.fixed},
              {"transfer_milliseconds_per_token", profile.transfer.per_token},
              {"update_milliseconds", profile.update},
              {"iterations", iterations}}
      .dump(1);
}

Profile profile_from_json(std::string_view text, const std::filesystem::path& path) {
  const nlohmann::json json = parse_json_object(text, path);
  const JsonFields fields(json, path);
  if (fields.string("format") != kFormat) {
    fields.throw_not("format", fmt::format("\"{}\"; measure again with 'teratron profile'", kFormat));
  }
  Profile profile;
  const JsonFields key(fields.object("measured_for"), path);
  visit(
      profile.key,
      [&](const char* name, std::string& value) {
        // Earlier profiles are of GPT-2's layers.
        if (&value != &profile.key.layer || key.has(name)) value = key.string(name);
      },
      [&](const char* name, std::int64_t& value) {
        const bool divides = &value == &profile.key.sequences || &value == &profile.key.tensor_parallel;
        value = key.integer(name, divides ? 1 : 0, kMost);
      });
  for (const nlohmann::json& stage : objects(fields, "stages")) {
    profile.stages.push_back(stage_from_json(JsonFields(stage, path), path));
  }
  require_alike(profile, path);
  profile.pace = {.alone = factor(fields, "pace_alone"), .together = factor(fields, "pace_together")};
  profile.transfer = {.fixed = time(fields, "transfer_latency_milliseconds"),
                      .per_token = time(fields, "transfer_milliseconds_per_token")};
  profile.update = time(fields, "update_milliseconds");
  for (const nlohmann::json& iteration : objects(fields, "iterations")) {
    profile.iterations.push_back(iteration_from_json(JsonFields(iteration, path), profile.longest()));
  }
  return profile;
}

void require_key(const Profile& profile, const ProfileKey& wanted, const std::filesystem::path& path) {
  std::vector<std::pair<std::string, std::string>> ours;
  const auto collect = [&](const char* name, const auto& value) { ours.emplace_back(name, fmt::format("{}", value)); };
  visit(wanted, collect, collect);
  std::vector<std::string> differences;
  std::size_t field = 0;
  const auto compare = [&](const char* name, const auto& value) {
    const std::string theirs = fmt::format("{}", value);
    const std::string& here = ours[field++].second;
    if (theirs != here) differences.push_back(fmt::format("{} {}, here {}", name, theirs, here));
  };
  visit(profile.key, compare, compare);
  if (profile.longest() < wanted.tokens) {
    differences.push_back(fmt::format("slices of {} tokens at most, here {}", profile.longest(), wanted.tokens));
  }
  if (differences.empty()) return;
  throw_user_error("{}: this profile was measured for something else ({}); measure again with 'teratron profile'",
                   path.string(), fmt::join(differences, "; "));
}

}  // namespace teratron::slicing
