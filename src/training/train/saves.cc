#include "train/saves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"
#include "train/config/resume_rules.h"
#include "train/doctor/doctor.h"
#include "train/losses.h"

namespace teratron {
namespace {

constexpr const char* kSavedByTime = "saved_by_time";  // name in a checkpoint's training state

}  // namespace

Saves::Saves(const TrainConfig& config, const TrainingTask& task, Updates& updates, Doctor* doctor)
    : config_(config), task_(task), updates_(updates), doctor_(doctor) {}

std::int64_t Saves::bytes_of_copy() const {
  Executor& executor = updates_.executor();
  if (!config_.output.async_save || !saves() || !writes_checkpoints(executor.plan().coordinates())) return 0;
  return bytes_of_copied_checkpoint(executor.all_parameters(), executor.backend().compute_dtype());
}

void Saves::allocate() {
  if (config_.output.async_save) background_.emplace(bytes_of_copy());
}

void Saves::begin_at(const TrainingState& state) {
  last_ = state.iteration;
  replaced_ = state.counter(kSavedByTime) != 0 ? std::optional(last_) : std::nullopt;
}

bool Saves::is_due_by_time(double seconds) const {
  return config_.output.save_interval == 0 && has_passed(config_.output.save_interval_in_mins, seconds - counted_from_);
}

bool Saves::lasts(const Occasion& occasion) const {
  return saves() &&
         (occasion.best || occasion.ends || config_.is_due(config_.output.save_interval, updates_.iteration()));
}

void Saves::save(const Occasion& occasion, const TrainingState& state, TrainingObserver& observer) {
  finish(observer);
  const std::int64_t iteration = updates_.iteration();
  if (!background_ || occasion.ends || iteration == config_.train_iters) {
    return observer.saved(iteration, save_now(occasion, state));
  }
  note_activity({.name = "copy for the checkpoint", .iteration = iteration});
  Executor& executor = updates_.executor();
  background_->begin(config_.output.save, task_.config, executor.all_parameters(), executor.backend(),
                     marked(state, occasion), options(occasion), updates_.mesh());
  note(occasion);
  unproven_ = iteration;
}

std::filesystem::path Saves::save_now(const Occasion& occasion, const TrainingState& state) {
  note_activity({.name = "checkpoint", .iteration = updates_.iteration()});
  require_finite_loss();
  Executor& executor = updates_.executor();
  const std::filesystem::path folder =
      save_checkpoint(config_.output.save, task_.config, executor.all_parameters(), executor.backend(),
                      marked(state, occasion), options(occasion), &updates_.mesh());
  note(occasion);
  tell_doctor(last_);
  return updates_.mesh().data->rank() == 0 ? folder : std::filesystem::path();
}

void Saves::save_last(const TrainingState& state, TrainingObserver& observer) {
  if (!saves()) return;
  if (unproven_) {
    require_finite_loss();
    release();
  }
  finish(observer);
  if (!has_last_update()) observer.saved(updates_.iteration(), save_now({.ends = true}, state));
}

TrainingState Saves::marked(TrainingState state, const Occasion& occasion) const {
  if (!lasts(occasion)) state.counters[kSavedByTime] = 1;
  return state;
}

SaveOptions Saves::options(const Occasion& occasion) const {
  return {.run = task_.run,
          .tokenizer = config_.model.tokenizer,
          .settings = recorded_settings(config_, task_.config, task_.split_rule),
          .keep_last = config_.output.keep_last,
          .best = occasion.best,
          .replaces = replaced_};
}

void Saves::note(const Occasion& occasion) {
  last_ = updates_.iteration();
  replaced_ = lasts(occasion) ? std::nullopt : std::optional(last_);
}

// A save may delete older checkpoints, so the one that replaces them must be resumable. Finite weights may be so large
// that no forward pass is finite: one micro-batch of the next samples tests that.
void Saves::require_finite_loss() {
  const std::int64_t one_for_each_copy = updates_.executor().options().batch * updates_.mesh().data->size();
  const SampleRange next{updates_.batches().consumed_after(updates_.iteration()), one_for_each_copy};
  const LossSums losses = mean_losses(updates_.executor(), updates_.reader(), *task_.training, next);
  if (!std::isfinite(losses.total())) updates_.throw_weights_diverged("the loss");
}

void Saves::release() {
  if (!unproven_) return;
  background_->release();
  tell_doctor(*std::exchange(unproven_, std::nullopt));
}

void Saves::tell_doctor(std::int64_t iteration) {
  if (doctor_ != nullptr) doctor_->goes_back_to(iteration_folder(config_.output.save, iteration), iteration);
}

void Saves::report_finished(TrainingObserver& observer) {
  if (!background_) return;
  if (const auto folder = background_->finished()) observer.saved(last_, *folder);
}

void Saves::finish(TrainingObserver& observer) {
  if (!background_ || unproven_) return;
  note_activity({.name = "end of the checkpoint", .iteration = last_});
  if (const auto folder = background_->wait()) observer.saved(last_, *folder);
}

void Saves::restore_best_link(std::int64_t best) const {
  const std::filesystem::path& save = config_.output.save;
  if (save.empty() || !updates_.is_first_rank()) return;
  const std::vector<std::int64_t> there = iterations_in(save);
  if (!std::ranges::binary_search(there, best)) return;
  if (there.back() > updates_.iteration()) return;  // nothing is left to do, and the link is of the run that went on
  std::error_code error;
  if (!std::filesystem::equivalent(iteration_folder(save, best), save / kBestLink, error)) link_best(save, best);
}

}  // namespace teratron
