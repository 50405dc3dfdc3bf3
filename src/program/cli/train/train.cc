// teratron train: pretrains a model that continues text, or a BERT.
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "run/pretraining.h"

namespace teratron {
namespace {

std::string_view name_of_end(const TrainingResult& result) {
  switch (result.end) {
    case RunEnd::kSignal: return name_of_signal(result.signal);
    case RunEnd::kExitDuration: return "exit-duration-in-mins";
    case RunEnd::kEarlyStop: return "early-stop";
    case RunEnd::kComplete: break;
  }
  return "train-iters";
}

nlohmann::ordered_json json_of(const PretrainingResult& run) {
  const TrainingResult& result = run.training;
  const auto number = [](std::optional<double> value) { return value ? nlohmann::ordered_json(*value) : nullptr; };
  return {{"iterations", result.iterations},
          {"ended_by", name_of_end(result)},
          {"consumed_samples", result.consumed_samples},
          {"final_loss", number(result.final_loss)},
          {"validation_loss", number(result.validation_loss)},
          {"tokens_per_second", std::round(10 * result.tokens_per_second) / 10},
          {"peak_memory_bytes", run.peak_memory}};
}

}  // namespace

Command train_command() {
  Command command =
      make_command<TrainConfig>("train", "trains a GPT-2, a Llama or a BERT on a tokenised corpus", nullptr);
  command.run = [](std::span<const std::string> arguments) {
    TrainStart start = read_train_start(arguments);
    require_separate_files(fields_of(start.config));
    const PretrainingResult result = pretrain(start);
    if (result.is_first_process) report(start.config.output.json, "", json_of(result).dump());
    if (result.training.signal != 0) throw EndedBySignal(result.training.signal);
  };
  return command;
}

}  // namespace teratron
