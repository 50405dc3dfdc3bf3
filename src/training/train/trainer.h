// The training loop: updates, evaluation, checkpoints. It prints nothing: a TrainingObserver receives every event. All
// ranks of a run make the same calls and receive the same numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/native/checkpoint.h"
#include "train/config/config.h"
#include "train/doctor/doctor.h"
#include "train/run_control.h"
#include "train/saves.h"
#include "train/training_observer.h"
#include "train/training_task.h"
#include "train/updates.h"
#include "train/watch/loss_watch.h"
#include "train/watch/replica_check.h"
#include "train/watch/step_trace.h"

namespace teratron {

enum class RunEnd { kComplete, kSignal, kExitDuration, kEarlyStop };

struct TrainingResult {
  std::int64_t iterations = 0;  // applied in all, earlier runs included
  std::int64_t consumed_samples = 0;
  std::optional<double> final_loss;  // of this run's last update; nothing: all had been done before
  std::optional<double> validation_loss;
  double tokens_per_second = 0;  // of this run's updates: evaluation and saving left out
  RunEnd end = RunEnd::kComplete;
  int signal = 0;  // that ended it
};

class Trainer {
 public:
  // Plans everything and allocates nothing. Every rank makes its own with the same configuration; `mesh` holds its
  // groups, nullptr: it is alone. `profile`: measured costs of slices (profile/pipeline_profile.h), or nullptr.
  Trainer(const TrainConfig& config, Backend& backend, TrainingTask task, const std::shared_ptr<Mesh>& mesh = nullptr,
          const slicing::Profile* profile = nullptr);

  const Executor& executor() const { return updates_.executor(); }
  Executor& executor() { return updates_.executor(); }
  const TrainingTask& task() const { return task_; }
  const PipelinePlan& pipeline() const { return updates_.pipeline(); }
  const BatchSchedule& batches() const { return updates_.batches(); }  // after start(): earlier parts of it included
  const std::optional<StepTrace>& trace() const { return trace_; }     // where --trace asks for one
  std::int64_t iteration() const { return updates_.iteration(); }      // updates done; in a replay, again

  std::int64_t bytes_of_copy() const { return saves_.bytes_of_copy(); }  // of --async-save

  // Allocates, then starts from random weights, those of --finetune, or the checkpoint of --load. The iterations
  // already done. Writes no file. UserError: the checkpoint is damaged, or another run's (resume_rules.h).
  std::int64_t start();

  // Whether a started run has anything left to do, if only a validation.
  bool has_work() const { return (iteration() < config_.train_iters && !is_stalled()) || makes_up_for_validation(); }

  // Trains to the last iteration, or to the update after which all ranks agree that one of them is to end. Evaluates
  // and saves on the way as the configuration says, and at the end. DivergedError. EnvironmentError: the corpus cannot
  // be read any more, and what was trained until then is saved; with --check-replicas or --trace-numerics, the machine
  // has computed wrongly.
  TrainingResult run(TrainingObserver& observer, const RunControl& control = {});

  // Whether a validation is due after the updates done, and made.
  bool has_validated() const { return validation_is_due() && !validation_is_owed_; }

  // As Saves::save_now.
  std::filesystem::path save() { return saves_.save_now({.ends = true}, state()); }

 private:
  Update update(const RunControl& control);

  Diagnosis diagnose(std::int64_t bad, TrainingObserver& observer);
  void diagnose_jump(const IterationReport& report, TrainingObserver& observer);
  [[noreturn]] void throw_diagnosed(const std::string& diverged, TrainingObserver& observer);

  TrainingResult run_updates(TrainingObserver& observer, const RunControl& control);
  // Decisions of the loop, which follow from numbers that all ranks share.
  Requests requests(const RunControl& control) const;
  // The mean losses of --eval-iters global batches of the validation samples, or of all of them where these are fewer;
  // nothing if there are none. CorpusFailure.
  std::optional<LossSums> validation_losses();
  std::int64_t validated_samples() const;  // that these are means over
  void validate(TrainingObserver& observer, TrainingResult& result);
  std::vector<TaskScore> finite_scores();  // DivergedError: an output is not finite
  bool validation_is_due() const { return config_.is_due(config_.output.eval_interval, iteration()); }
  bool makes_up_for_validation() const { return validation_is_owed_ && validation_is_due(); }
  bool is_stalled() const { return config_.output.early_stop > 0 && best_.since >= config_.output.early_stop; }
  bool is_best() const { return config_.output.save_best && best_.iteration == iteration(); }
  void sample(TrainingObserver& observer);
  void end_if_asked(const Requests& requests, TrainingObserver& observer, TrainingResult& result) const;
  void end_if_stalled(TrainingObserver& observer, TrainingResult& result) const;
  void save_if_due(const Requests& requests, bool ends, TrainingObserver& observer, const RunControl& control);
  // Whether the best validation of a run in this state compares with those of this one.
  bool validates_as(const TrainingState& state) const;
  TrainingState state() const;
  void resume();
  void restore(const TrainingState& state);

  TrainConfig config_;
  TrainingTask task_;
  Updates updates_;  // refers to both
  std::optional<StepTrace> trace_;
  std::optional<Doctor> doctor_;  // --trace-numerics
  Saves saves_;
  BestValidation best_, best_elsewhere_;  // the second does not compare with validations of this run
  bool validation_is_owed_ = false;       // a validation that was due is not made
  ReplicaCheck replicas_;
  LossWatch loss_watch_;
  bool reported_failed_sample_ = false;
};

}  // namespace teratron
