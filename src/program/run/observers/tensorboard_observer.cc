#include "run/observers/tensorboard_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/standard_streams.h"
#include "checkpoint/native/folders.h"

namespace teratron {
namespace {

using Curves = std::vector<std::pair<std::string, double>>;

// Names are those of training_log() and evaluate_and_print_results() in Megatron-LM's megatron/training/training.py. So
// are those of the kinds of losses.
constexpr const char *kOverSamples = " vs samples", *kOfValidation = " validation";
constexpr const char* kSample = "sample";  // not one of Megatron-LM's

// In a --save folder: where its run has its records.
constexpr const char* kPlaceOfRecords = "tensorboard_dir.txt";

std::string place_of_records(const TrainConfig& config) {
  return std::filesystem::absolute(config.output.tensorboard_dir).lexically_normal().string() + '\n';
}

// Whether the records are of this run, which ended before its first checkpoint and so begins again.
bool begins_again(const TrainConfig& config) {
  const OutputSettings& output = config.output;
  const std::filesystem::path place = output.save / kPlaceOfRecords;
  std::error_code none;
  return !output.save.empty() && !std::filesystem::exists(output.save / kTrackerFile, none) &&
         std::filesystem::exists(place, none) && read_file(place) == place_of_records(config);
}

TensorBoardLog::Points points(std::int64_t step, const Curves& curves, const char* suffix = "") {
  TensorBoardLog::Points points{.step = step};
  for (const auto& [name, value] : curves) points.values.emplace_back(name + suffix, static_cast<float>(value));
  return points;
}

}  // namespace

bool writes_tensorboard(const TrainConfig& config) {
  const OutputSettings& output = config.output;
  return !output.tensorboard_dir.empty() &&
         (!output.tensorboard_is_recorded || TensorBoardLog::holds_records(output.tensorboard_dir));
}

void prepare_tensorboard(const TrainConfig& config) {
  const std::filesystem::path& folder = config.output.tensorboard_dir;
  if (folder.empty()) return;
  if (!writes_tensorboard(config)) {
    report_to_user(
        fmt::format("nothing is written to the checkpoint's --tensorboard-dir '{}', which holds no records of its run; "
                    "give the flag to write there",
                    folder.string()));
  }
  if (!config.output.load.empty() || !TensorBoardLog::holds_records(folder) || begins_again(config)) return;
  throw_user_error(
      "'{}' already holds the records of a run; go on with that run by --load, or choose another --tensorboard-dir",
      folder.string());
}

TensorBoardObserver::TensorBoardObserver(const TrainConfig& config, RunScale scale, std::int64_t start,
                                         bool keeps_validation, std::function<void(const std::string&)> report)
    : scale_(std::move(scale)) {
  const auto keeps = [start, samples = scale_.batches.consumed_after(start), keeps_validation](std::int64_t step,
                                                                                               std::string_view tag) {
    const std::int64_t last = tag.ends_with(kOverSamples) ? samples : start;
    return step < last ||
           (step == last && (keeps_validation || !(tag.find(kOfValidation) != tag.npos || tag.starts_with(kSample))));
  };
  const auto open = [folder = config.output.tensorboard_dir, save = config.output.save,
                     place = place_of_records(config), keeps] {
    if (!save.empty())
      write_file_atomically(save / kPlaceOfRecords, place);  // first, else a kill leaves nobody's records
    return std::make_unique<TensorBoardLog>(folder, keeps);
  };
  log_.emplace(open, std::move(report));
}

void TensorBoardObserver::write(std::vector<TensorBoardLog::Points> points, double wall_time) {
  log_->write([&](TensorBoardLog& log) { log.scalars(std::move(points), wall_time); });
}

void TensorBoardObserver::iteration(const IterationReport& r) {
  Curves curves = {{"learning-rate", r.learning_rate},
                   {"batch-size", static_cast<double>(r.global_batch_size)},
                   {"loss-scale", r.loss_scale}};
  for (std::size_t kind = 0; kind < scale_.losses.size(); ++kind) {
    curves.emplace_back(scale_.losses[kind].name, r.losses.of_kind[kind]);
  }
  if (!r.skipped) curves.emplace_back("grad-norm", r.gradient_norm);
  TensorBoardLog::Points over_samples = points(r.consumed_samples, curves, kOverSamples);
  curves.emplace_back("iteration-time", r.seconds);
  // Unit as Megatron-LM's: 10^12 floating-point operations per second and rank.
  curves.emplace_back("throughput", scale_.flops_per_second(r) / scale_.ranks / 1e12);
  curves.emplace_back("tokens-per-second", scale_.tokens_per_second(r));
  curves.emplace_back("mfu", scale_.mfu(r));
  if (scale_.memory) {
    curves.emplace_back("mem-allocated-bytes", static_cast<double>(scale_.memory->fullest(r.iteration)));
    curves.emplace_back("mem-planned-bytes", static_cast<double>(scale_.memory->planned()));
  }
  write({points(r.iteration, curves), std::move(over_samples)}, r.done_at);
}

void TensorBoardObserver::validation(std::int64_t iteration, const LossSums& losses) {
  constexpr double kMostExponent = 20;  // Megatron-LM's, so that the first points do not dwarf the others
  Curves curves;
  for (std::size_t kind = 0; kind < scale_.losses.size(); ++kind) {
    const std::string name = std::string(scale_.losses[kind].name) + kOfValidation;
    curves.emplace_back(name, losses.of_kind[kind]);
    if (scale_.losses[kind].is_rate || !scale_.losses[kind].has_perplexity) continue;
    curves.emplace_back(name + " ppl", std::exp(std::min(losses.of_kind[kind], kMostExponent)));
  }
  write({points(iteration, curves), points(scale_.batches.consumed_after(iteration), curves, kOverSamples)});
}

void TensorBoardObserver::scored(std::int64_t iteration, std::span<const TaskScore> scores) {
  Curves curves;
  for (const TaskScore& score : scores) curves.emplace_back(score.name + kOfValidation, score.value);
  write({points(iteration, curves)});
}

void TensorBoardObserver::sample(std::int64_t iteration, const std::string& prompt,
                                 std::span<const std::int32_t> tokens) {
  log_->write(
      [&](TensorBoardLog& log) { log.text(iteration, fmt::format("{} {}", kSample, prompt), scale_.decoded(tokens)); });
}

}  // namespace teratron
