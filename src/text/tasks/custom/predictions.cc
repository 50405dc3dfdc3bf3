#include "tasks/custom/predictions.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "tasks/custom/table.h"

namespace teratron::custom {
namespace {

namespace fs = std::filesystem;

std::vector<float> probabilities_of(const std::vector<float>& logits) {
  const double largest = logits[static_cast<std::size_t>(index_of_largest(logits))];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  std::vector<float> all;
  for (const float logit : logits)
    all.push_back(static_cast<float>(std::exp(static_cast<double>(logit) - largest) / sum));
  return all;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

void write_predictions(const fs::path& path, const TaskOutputValues& outputs, const LabelSet& labels) {
  std::string text;
  std::vector<std::string> names;
  for (const std::string& name : labels.names) names.push_back(quoted(name));
  for (std::size_t row = 0; row < outputs.size(); ++row) {
    if (labels.are_numbers) {
      text += fmt::format("{{\"index\": {}, \"number\": {}}}\n", row, outputs[row].front());
      continue;
    }
    const std::vector<float> probabilities = probabilities_of(outputs[row]);
    text += fmt::format("{{\"index\": {}, \"label\": {}, \"probabilities\": {{", row,
                        names[static_cast<std::size_t>(index_of_largest(outputs[row]))]);
    for (std::size_t label = 0; label < names.size(); ++label) {
      text += fmt::format("{}{}: {}", label == 0 ? "" : ", ", names[label], probabilities[label]);
    }
    text += "}}\n";
  }
  write_file_atomically(path, text);
}

Predictions read_predictions(const fs::path& path, std::size_t rows, double most) {
  std::vector<std::optional<std::string>> found(rows);
  std::optional<bool> are_numbers;
  visit_objects(path, {}, [&](std::string_view object, const std::string& place, std::int64_t /*line*/) {
    auto line = parse_fitted<nlohmann::json>(object);
    if (line.is_discarded()) line = nlohmann::json::object();  // it nests too deep, as no prediction does
    const nlohmann::json number = line.value("number", nlohmann::json()), said = line.value("label", nlohmann::json());
    const bool has_index = line.contains("index") && line["index"].is_number_unsigned();
    const bool has_label = said.is_string() && !said.get_ref<const std::string&>().empty();
    const bool has_number = number.is_number();
    if (!has_index || has_label == has_number) {
      throw_user_error(
          "{}: this is no prediction, which looks like {{\"index\": 0, \"label\": \"a\"}} or {{\"index\": 0, "
          "\"number\": 1.5}}",
          place);
    }
    if (has_number && std::abs(number.get<double>()) > most) {
      throw_user_error("{}: the number {} is not from {:.3g} to {:.3g}, as predictions are; predict again", place,
                       number.dump(), -most, most);
    }
    const auto index = line["index"].get<std::size_t>();
    if (index >= rows)
      throw_user_error("{}: row {} is predicted, and the data have {}, counted from 0", place, index, rows);
    if (are_numbers.value_or(has_number) != has_number) {
      throw_user_error("{}: a {}, where the lines before have the other", place, has_number ? "number" : "label");
    }
    are_numbers = has_number;
    if (found[index]) throw_user_error("{}: row {} is predicted twice", place, index);
    found[index] = has_label ? said.get<std::string>() : number.dump();
  });
  Predictions all{.are_numbers = are_numbers.value_or(false)};
  for (std::optional<std::string>& one : found) {
    if (!one) {
      throw_user_error("'{}' has no prediction for row {} of {}, counted from 0", path.string(), all.values.size(),
                       rows);
    }
    all.values.push_back(std::move(*one));
  }
  return all;
}

ScoreReport report_of(std::span<const TaskScore> scores, std::int64_t examples, std::int64_t left_out,
                      std::string_view known, std::string_view item) {
  nlohmann::ordered_json json = {{fmt::format("{}s", item), examples}};
  std::string text = counted(examples, item);
  for (const TaskScore& score : scores) {
    text += fmt::format("   {} {:.4f}", score.name, score.value);
    json[score.name] = score.value;
  }
  json["without_label"] = left_out;
  text += left_out == 0 ? "\n" : fmt::format("\n{} without a {}, not scored\n", counted(left_out, "row"), known);
  return {.text = text, .json = json.dump()};
}

}  // namespace teratron::custom
