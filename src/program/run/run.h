// Complete training run: locks its folder, checks memory before taking it, resumes from a checkpoint, ends by signals
// after a save, and reports to observers.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/files/save_lock.h"
#include "run/observers/observer_list.h"
#include "run/run_launch.h"
#include "train/plans/memory_remedies.h"
#include "train/trainer.h"

namespace teratron {

struct RunSetup {
  RunLaunch& launch;
  const Rank& rank;
  Backend& backend;
  const TrainConfig& config;
  const CheckpointInfo* checkpoint = nullptr;  // of config.output.load
  const slicing::Profile* profile = nullptr;   // measured costs of slices
  HasFlag has_flag = {};                       // whether the command has a flag, for advice; empty: all of train's
};

// Folder, made with those above it if missing. Its destructor removes the folders that it made and that are empty.
// UserError, EnvironmentError: as make_folders().
class MadeFolders {
 public:
  explicit MadeFolders(const std::filesystem::path& folder);
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  ~MadeFolders();

 private:
  explicit MadeFolders(std::vector<std::filesystem::path> missing) : made_(std::move(missing)) {}
  const std::vector<std::filesystem::path> made_;  // the inmost first
};

// Folder of --save while a run lives: made if missing, and locked against other runs. A run that ends before it writes
// removes the folders that it made. UserError, EnvironmentError: base/files/save_lock.h.
class HeldSaveFolder {
 public:
  explicit HeldSaveFolder(const std::filesystem::path& folder);

 private:
  const MadeFolders folders_;
  const SaveLock lock_;
};

// Run of one rank. Every rank of the layout makes its own.
class Run {
 public:
  Run(const RunSetup& setup, TrainingTask task);

  Trainer& trainer() { return trainer_; }

  // Adds an observer to those of every run (add_run_observers). Only the first rank's observers get events.
  void add(std::unique_ptr<TrainingObserver> observer) { observers_.add(std::move(observer)); }

  // Trains from the first update, or the checkpoint's, to the last, or until all ranks agree to end. Every rank calls
  // it once. A run without updates left changes no file, and one that fails before its loop begins leaves none. Logs
  // and traces that cannot be written end no run. UserError, EnvironmentError: as Trainer and base/files/save_lock.h;
  // EnvironmentError: not enough memory.
  TrainingResult run();

 private:
  std::int64_t start();
  TrainingResult run_first_rank(std::int64_t done, const RunControl& control, double peak_flops,
                                std::int64_t planned_memory);
  void prepare_trace();
  void write_trace();
  const TrainConfig& config() const { return setup_.config; }

  const RunSetup setup_;
  std::optional<HeldSaveFolder> save_folder_;  // of the first rank, as long as observers write there
  std::optional<MadeFolders> trace_folders_;
  bool writes_trace_ = false;  // of the first rank, once updates are left to do
  Trainer trainer_;
  ObserverList observers_;
};

}  // namespace teratron
