#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "checkpoint/adapter_base.h"
#include "runtime/recorded_data.h"
#include "runtime/weight_use.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

// Names in a checkpoint's training state.
constexpr const char *kBestValidation = "best_validation_loss", *kSinceBest = "validations_since_best",
                     *kBestIteration = "best_validation_iteration";
constexpr const char* kValidationIsOwed = "validation_is_owed";
constexpr const char *kLossLevel = "loss_level", *kLowestLoss = "lowest_loss_level";

}  // namespace

Trainer::Trainer(const TrainConfig& config, Backend& backend, TrainingTask task, const std::shared_ptr<Mesh>& mesh,
                 const slicing::Profile* profile)
    : config_(config), task_(std::move(task)), updates_(config_, task_, backend, mesh, profile) {
  check(!task_.model->traits.losses.empty(), "a model that is trained has a loss");
  if (!config.output.trace.empty()) trace_.emplace();
  if (config.output.trace_numerics) doctor_.emplace(updates_);
}

std::int64_t Trainer::bytes_of_copy() {
  if (!config_.output.async_save || config_.output.save.empty()) return 0;
  if (!writes_checkpoints(executor().plan().coordinates())) return 0;
  return bytes_of_copied_checkpoint(executor().all_parameters(), executor().backend().compute_dtype());
}

std::int64_t Trainer::start() {
  note_activity({.name = "start from weights or a checkpoint"});
  executor().allocate();
  if (config_.output.async_save) background_.emplace(bytes_of_copy());
  if (!config_.output.load.empty()) {
    resume();
    return iteration();
  }
  const bool has_base = !config_.output.finetune.empty() && task_.config.adapters.active();
  if (has_base && writes_checkpoints(executor().plan().coordinates())) {
    task_.run.base = adapter_base_of(config_.output.finetune);
  }
  updates_.begin();
  return 0;
}

void Trainer::resume() {
  const CheckpointInfo checkpoint = read_checkpoint_info(config_.output.checkpoint());
  config_ = filled_from(checkpoint, config_);
  require_usable(task_.run.kind == RunKind::kFinetuning ? WeightUse::kFinetuneAgain : WeightUse::kTrainLoad,
                 source_of(checkpoint), task_.run.task, task_.config);
  require_resumable(checkpoint, config_);
  if (!config_.split.override_data) require_same_data(checkpoint, task_.run, task_.data);
  task_.run.base = checkpoint.run.base;
  load_base(checkpoint.folder, checkpoint.run.base, task_.config, executor().all_parameters(), executor().backend(),
            updates_.is_first_rank());
  const TrainingState state = updates_.resume(checkpoint.folder);
  restore(state);
  saves_.kept = replicas_were_equal_ = iteration();
  if (doctor_) doctor_->goes_on_from(checkpoint.folder, state);
}

Update Trainer::update(const RunControl& control) {
  if (trace_) executor().record(trace_->begin(iteration() + 1));
  Update update = updates_.compute([&] { return requests(control); });
  if (doctor_) doctor_->take(update);
  if (update.gradient_norm) {  // the loss of the weights that were copied is finite
    if (background_) background_->release();
    if (saves_.unproven) goes_back_to(*std::exchange(saves_.unproven, std::nullopt));
  }
  updates_.apply(update);
  if (doctor_) update.report.layers = doctor_->layers();
  return update;
}

void Trainer::throw_weights_diverged(const std::string& what) const {
  throw DivergedError(fmt::format(
      "training has diverged: {} of the weights after iteration {} is not finite; they are not saved. Lower --lr, "
      "lengthen --lr-warmup-iters or set --clip-grad, and go on from the last checkpoint, or begin anew",
      what, iteration()));
}

std::optional<LossSums> Trainer::validation_losses(std::int64_t batches) {
  if (!task_.validation) return std::nullopt;
  const Samples& samples = *task_.validation;
  note_activity({.name = "validation", .iteration = iteration()});
  const SampleRange first{0, std::min(samples.samples_per_epoch(), batches * updates_.batches().largest())};
  const LossSums losses = mean_losses(executor(), updates_.reader(), samples, first);
  updates_.reader().require_readable(updates_.mesh());
  return losses;
}

TrainingState Trainer::state() const {
  TrainingState state = updates_.state();
  record_data(task_.data, state);
  record_split(task_.split_rule, state);
  record_documents(config_.documents, state);
  if (best_.value) {
    state.values[kBestValidation] = *best_.value;
    state.counters[kSinceBest] = best_.since;
    state.counters[kBestIteration] = best_.iteration;
  }
  if (validation_is_owed_) state.counters[kValidationIsOwed] = 1;
  if (const std::optional<LossWatch::State> watch = loss_watch_.state(); doctor_ && watch) {
    state.values[kLossLevel] = watch->level;
    state.values[kLowestLoss] = watch->lowest;
  }
  return state;
}

void Trainer::restore(const TrainingState& state) {
  best_.since = state.counter(kSinceBest);
  best_.iteration = state.counter(kBestIteration, -1);
  validation_is_owed_ = state.counter(kValidationIsOwed) != 0;
  if (const auto best = state.values.find(kBestValidation); best != state.values.end()) {
    best_.value = best->second;
  }
  const auto level = state.values.find(kLossLevel), lowest = state.values.find(kLowestLoss);
  if (!doctor_ || level == state.values.end() || lowest == state.values.end()) return;
  loss_watch_.restore({.level = level->second, .lowest = lowest->second});
}

}  // namespace teratron
