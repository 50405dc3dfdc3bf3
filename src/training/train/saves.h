// Checkpoints of a run: when one is due, what it replaces, and whether it is written beside training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoint/native/background_save.h"
#include "checkpoint/native/checkpoint.h"
#include "train/config/config.h"
#include "train/training_observer.h"
#include "train/training_task.h"
#include "train/updates.h"

namespace teratron {

class Doctor;

// All ranks make the same calls; the first copy of the model is saved, by all its ranks.
class Saves {
 public:
  // Refers to all of them. `doctor`: learns of checkpoints to go back to; nullptr: there is none.
  Saves(const TrainConfig& config, const TrainingTask& task, Updates& updates, Doctor* doctor);

  // Host memory that a copy of the checkpoint takes on this rank: --async-save, on the rank that writes; else 0.
  std::int64_t bytes_of_copy() const;
  void allocate();  // that memory

  // The run begins at the checkpoint of this state.
  void begin_at(const TrainingState& state);
  bool has_last_update() const { return last_ == updates_.iteration(); }  // saved, or begun at

  // Sets the time from which --save-interval-in-mins counts.
  void count_from(double seconds) { counted_from_ = seconds; }
  bool is_due_by_time(double seconds) const;

  struct Occasion {
    bool best = false;   // the weights have the best validation so far
    bool ends = false;   // the run ends
    bool asked = false;  // by time, on any rank
  };
  bool is_due(const Occasion& occasion) const { return lasts(occasion) || (saves() && occasion.asked); }
  // Saves after the checkpoint under way, and with --async-save beside the updates that follow. UserError, on all
  // ranks: weights, the optimizer's slots or the loss of a micro-batch are not finite; then checkpoints that stand
  // stay.
  void save(const Occasion& occasion, const TrainingState& state, TrainingObserver& observer);
  // Waits, and returns the folder; of other copies of the model an empty path.
  std::filesystem::path save_now(const Occasion& occasion, const TrainingState& state);
  // Saves what no checkpoint holds yet; no further update comes.
  void save_last(const TrainingState& state, TrainingObserver& observer);

  // Lets the copy take its name. Called when an update has found the loss of the saved weights finite.
  void release();
  void report_finished(TrainingObserver& observer);  // the checkpoint under way, if it stands by now
  // Waits for the checkpoint under way, if there is one that was released.
  void finish(TrainingObserver& observer);

  // Brings back the link to the best checkpoint, that of iteration `best`, after a kill between the save and the link,
  // or where it led to a later checkpoint, which is set aside.
  void restore_best_link(std::int64_t best) const;

 private:
  bool saves() const { return !config_.output.save.empty(); }
  bool lasts(const Occasion& occasion) const;  // else the next checkpoint replaces it
  // State that says, in a checkpoint that does not last, that the next one replaces it: for a later start of the run.
  TrainingState marked(TrainingState state, const Occasion& occasion) const;
  SaveOptions options(const Occasion& occasion) const;
  void note(const Occasion& occasion);
  void require_finite_loss();
  void tell_doctor(std::int64_t iteration);

  const TrainConfig& config_;
  const TrainingTask& task_;
  Updates& updates_;
  Doctor* const doctor_;
  std::optional<BackgroundSave> background_;  // --async-save
  std::int64_t last_ = 0;                     // iteration that was last saved, or begun at
  double counted_from_ = 0;
  std::optional<std::int64_t> replaced_;  // iteration of the checkpoint that the next one replaces
  std::optional<std::int64_t> unproven_;  // copied, and no update has tested it yet
};

}  // namespace teratron
