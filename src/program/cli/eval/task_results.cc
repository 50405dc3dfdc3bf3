#include "cli/eval/task_results.h"

#include <fmt/format.h>

namespace teratron {

std::string text_of(std::span<const TaskScore> scores) {
  std::string text;
  for (const TaskScore& score : scores) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", score.name, score.value);
  }
  return text;
}

nlohmann::ordered_json json_of(std::span<const TaskScore> scores) {
  nlohmann::ordered_json json;
  for (const TaskScore& score : scores) json[score.name] = score.value;
  return json;
}

}  // namespace teratron
