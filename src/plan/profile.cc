#include "plan/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"

namespace teratron::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "teratron-profile-1";
constexpr std::int64_t kMost = std::int64_t{1} << 40;  // of any number in a key

// The key's fields, once: text(name, member), number(name, member).
template <class Key, class Text, class Number>
void visit(Key& key, const Text& text, const Number& number) {
  text("processor", key.processor);
  text("dtype", key.dtype);
  text("recompute", key.recompute);
  number("threads", key.threads);
  number("hidden_size", key.hidden_size);
  number("ffn_hidden_size", key.ffn_hidden_size);
  number("attention_heads", key.attention_heads);
  number("layers", key.layers);
  number("tensor_parallel", key.tensor_parallel);
  number("sequences", key.sequences);
}

Json json_of(const CostModel& model, const RelativeError& error) {
  return {{"lengths", model.lengths},
          {"milliseconds_without_context", model.without_context},
          {"context_coefficients", model.context},
          {"mean_relative_error", error.mean},
          {"worst_relative_error", error.worst}};
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
    if (!(time > 0 && time < 1e12)) fields.throw_not("milliseconds_without_context", "a list of times above 0");
  }
  for (const double length : numbers(fields, "lengths")) {
    const double last = model.lengths.empty() ? 0 : static_cast<double>(model.lengths.back());
    if (!(length > last && length <= 1e9)) fields.throw_not("lengths", "a list of lengths that grow");
    model.lengths.push_back(static_cast<std::int64_t>(length));
    if (static_cast<double>(model.lengths.back()) != length) fields.throw_not("lengths", "a list of whole numbers");
  }
  if (model.lengths.empty() || model.lengths.size() != model.without_context.size()) {
    fields.throw_not("lengths", "a list with a length for each of milliseconds_without_context");
  }
  const std::vector<double> context = numbers(fields, "context_coefficients");
  if (context.size() != model.context.size()) fields.throw_not("context_coefficients", "a list of four numbers");
  std::copy(context.begin(), context.end(), model.context.begin());
  return model;
}

RelativeError error_from_json(const JsonFields& fields) {
  return {.mean = fields.number("mean_relative_error"), .worst = fields.number("worst_relative_error")};
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json key = Json::object();
  const auto put = [&](const char* name, const auto& value) { key[name] = value; };
  visit(profile.key, put, put);
  return Json{{"format", kFormat},
              {"measured_for", key},
              {"forward", json_of(profile.forward, profile.forward_error)},
              {"backward", json_of(profile.backward, profile.backward_error)}}
      .dump(1);
}

Profile profile_from_json(std::string_view text, const std::filesystem::path& path) {
  const nlohmann::json json = parse_json_object(text, path);
  const JsonFields fields(json, path);
  if (fields.string("format") != kFormat) fields.throw_not("format", fmt::format("\"{}\"", kFormat));
  Profile profile;
  const JsonFields key(fields.object("measured_for"), path);
  visit(
      profile.key, [&](const char* name, std::string& value) { value = key.string(name); },
      [&](const char* name, std::int64_t& value) { value = key.integer(name, 0, kMost); });
  const JsonFields forward(fields.object("forward"), path), backward(fields.object("backward"), path);
  profile.forward = model_from_json(forward);
  profile.forward_error = error_from_json(forward);
  profile.backward = model_from_json(backward);
  profile.backward_error = error_from_json(backward);
  if (profile.forward.lengths != profile.backward.lengths) {
    throw_user_error(
        "{}: forward and backward were measured for different lengths; measure again with 'teratron "
        "profile'",
        path.string());
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
  if (differences.empty()) return;
  throw_user_error("{}: this profile was measured for something else ({}); measure again with 'teratron profile'",
                   path.string(), fmt::join(differences, "; "));
}

}  // namespace teratron::plan
