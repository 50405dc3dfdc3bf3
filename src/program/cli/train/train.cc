// teratron train: pretrains a model that continues text, or a BERT.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/live_line.h"
#include "run/pretraining.h"
#include "run/supervisor.h"

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

void append(std::vector<std::string>& words, std::span<const std::string> more) {
  words.insert(words.end(), more.begin(), more.end());
}

// The last of equal flags counts: a child supervises nobody, and goes on from what is saved.
int supervise_training(const TrainConfig& config, std::span<const std::string> arguments) {
  if (const std::string launcher = launcher_of_process(); !launcher.empty()) {
    throw_user_error(
        "--restart-on-failure is for the process that starts the ranks, and {} started this one; start one process, "
        "and give it the launcher: teratron train --restart-on-failure {} --launcher '{} ..'",
        launcher, config.failures.restarts, launcher);
  }
  const std::string save = std::filesystem::absolute(config.output.save).string();
  Supervision supervision{
      .restarts = config.failures.restarts,
      .save = save,
      .start = config.failures.launcher_words(),
      .resume = {"--load", save, "--iteration", "0"},
      .exit_minutes = config.output.exit_duration_in_mins,
      .say = [](const std::string& line) { report_to_user((terminal_columns(stderr) > 0 ? "\n" : "") + line); }};
  append(supervision.start, std::vector<std::string>{std::filesystem::read_symlink("/proc/self/exe"), "train"});
  append(supervision.start, arguments);
  append(supervision.start, std::vector<std::string>{"--restart-on-failure", "0", "--launcher="});
  return supervise(supervision);
}

}  // namespace

Command train_command() {
  Command command =
      make_command<TrainConfig>("train", "trains a GPT-2, a Llama or a BERT on a tokenised corpus", nullptr);
  command.run = [](std::span<const std::string> arguments) {
    TrainStart start = read_train_start(arguments);
    require_files(fields_of(start.config));
    if (start.config.failures.supervises()) std::exit(supervise_training(start.config, arguments));
    const PretrainingResult result = pretrain(start);
    if (result.is_first_process) report(start.config.output.json, "", json_of(result));
    if (result.training.signal != 0) throw EndedBySignal(result.training.signal);
  };
  return command;
}

}  // namespace teratron
