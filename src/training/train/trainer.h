// The training loop: updates, evaluation, checkpoints. It prints nothing: a TrainingObserver receives every event. All
// ranks of a run make the same calls and receive the same numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/native/background_save.h"
#include "checkpoint/native/checkpoint.h"
#include "train/config/config.h"
#include "train/doctor/doctor.h"
#include "train/run_control.h"
#include "train/training_task.h"
#include "train/updates.h"
#include "train/watch/loss_watch.h"
#include "train/watch/step_trace.h"

namespace teratron {

// Receives the events of a run; does nothing by itself, as on ranks other than the first.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void iteration(const IterationReport&) {}
  virtual void validation(std::int64_t /*iteration*/, const LossSums& /*losses*/) {}
  virtual void scored(std::int64_t /*iteration*/, std::span<const TaskScore> /*scores*/) {}
  // The model's continuation of a --sample-prompt.
  virtual void sample(std::int64_t /*iteration*/, const std::string& /*prompt*/,
                      std::span<const std::int32_t> /*tokens*/) {}
  // The checkpoint stands; with --async-save some updates later.
  virtual void saved(std::int64_t /*iteration*/, const std::filesystem::path& /*folder*/) {}
  // Text for people: the loss explodes, or why the run ends early.
  virtual void notice(const std::string& /*text*/) {}
  // Report all pending events now: a validation or a checkpoint comes next, or the run has ended. Not called if it ends
  // with an error.
  virtual void flush() {}
};

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

  // Host memory that a copy of the checkpoint takes on this rank: --async-save, on the rank that writes; else 0.
  std::int64_t bytes_of_copy();

  // Allocates, then starts from random weights, those of --finetune, or the checkpoint of --load. The iterations
  // already done. Writes no file. UserError: the checkpoint is damaged, or another run's (resume_rules.h).
  std::int64_t start();

  // Whether a started run has anything left to do, if only a validation.
  bool has_work() const {
    return iteration() < config_.train_iters || (validation_is_owed_ && validates_after(iteration()));
  }

  // Trains to the last iteration, or to the update after which all ranks agree that one of them is to end. Evaluates
  // and saves on the way as the configuration says, and at the end. DivergedError. EnvironmentError: the corpus cannot
  // be read any more, and what was trained until then is saved; with --check-replicas or --trace-numerics, the machine
  // has computed wrongly.
  TrainingResult run(TrainingObserver& observer, const RunControl& control = {});

  // Whether a run of these settings validates after `iteration` updates.
  bool validates_after(std::int64_t iteration) const { return is_due(config_.output.eval_interval, iteration); }

  // The mean losses of `batches` global batches of the validation samples, or of all of them where these are fewer;
  // nothing if there are none. CorpusFailure.
  std::optional<LossSums> validation_losses(std::int64_t batches);

  // The first copy of the model is saved, by all its ranks; the others return an empty path. UserError, on all ranks:
  // weights, the optimizer's slots or the loss of a micro-batch are not finite; then checkpoints that stand stay.
  struct SaveReason {
    bool best = false;     // the best validation so far
    bool by_time = false;  // and nothing else: the next checkpoint replaces it
  };
  std::filesystem::path save(SaveReason reason = {.best = false, .by_time = false});

 private:
  bool is_due(std::int64_t interval, std::int64_t iteration) const {
    return iteration == config_.train_iters || (interval > 0 && iteration % interval == 0);
  }
  Update update(const RunControl& control);
  // `what`: the loss of the current weights that is not finite.
  [[noreturn]] void throw_weights_diverged(const std::string& what) const;
  void require_finite_loss();
  void check_replicas();  // EnvironmentError, on all ranks: they differ

  Diagnosis diagnose(std::int64_t bad, TrainingObserver& observer);
  void diagnose_jump(const IterationReport& report, TrainingObserver& observer);
  [[noreturn]] void throw_diagnosed(const std::string& diverged, TrainingObserver& observer);

  TrainingResult run_updates(TrainingObserver& observer, const RunControl& control);
  void save_before_failure(TrainingObserver& observer);
  // --async-save: copies for a save under way beside training.
  void begin_save(SaveReason reason);
  void report_finished_save(TrainingObserver& observer);  // if it stands by now
  void finish_save(TrainingObserver& observer);           // waits for it, if there is one
  SaveOptions save_options(SaveReason reason) const;
  void note_save(SaveReason reason);
  void goes_back_to(std::int64_t iteration);  // the doctor

  // trainer_run.cc: what the loop decides.
  Requests requests(const RunControl& control) const;
  void validate(TrainingObserver& observer, TrainingResult& result);
  bool is_best() const { return config_.output.save_best && best_.iteration == iteration(); }
  void restore_best_link() const;
  void sample(TrainingObserver& observer);
  void end_if_asked(const Requests& requests, TrainingObserver& observer, TrainingResult& result) const;
  void end_if_stalled(TrainingObserver& observer, TrainingResult& result) const;
  void save_if_due(const Requests& requests, bool ends, TrainingObserver& observer, const RunControl& control);
  TrainingState state() const;
  void resume();
  void restore(const TrainingState& state);

  TrainConfig config_;
  TrainingTask task_;
  Updates updates_;  // refers to both
  std::optional<StepTrace> trace_;

  struct Saves {
    std::int64_t kept = 0;                 // iteration that was last saved, or started from
    double at = 0;                         // when, on the clock of RunControl
    std::optional<std::int64_t> by_time;   // iteration of the checkpoint that the next one replaces
    std::optional<std::int64_t> unproven;  // --async-save: copied, and no update has tested it yet
  };

  Saves saves_;
  BestValidation best_;
  bool validation_is_owed_ = false;           // the run was asked to end before a validation that was due
  std::int64_t replicas_were_equal_ = 0;      // after this iteration, or the one that the run started from
  std::optional<BackgroundSave> background_;  // --async-save
  LossWatch loss_watch_;
  std::optional<Doctor> doctor_;  // --trace-numerics
  bool reported_failed_sample_ = false;
};

}  // namespace teratron
