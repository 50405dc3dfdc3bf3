// The doctor of a run (--trace-numerics). It keeps the numbers of every update. Where a loss jumps or is not finite, it
// goes back to the last good state, makes every update again bit for bit, and compares. If the replay comes to other
// numbers than the record, the machine was at fault; if it repeats the fault, settings or data are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/doctor/account.h"
#include "train/doctor/step_record.h"

namespace teratron {

struct Diagnosis {
  std::string text;            // for people, on all ranks
  bool is_of_machine = false;  // else the replay repeated the fault, and the run stands where it stood
};

class Doctor {
 public:
  // The executor of `updates` keeps tallies.
  explicit Doctor(Updates& updates) : updates_(updates) {}

  // Takes an update that is computed and not applied. All ranks call it.
  void take(const Update& update);
  // Layers of the last one.
  const std::vector<LayerNumerics>& layers() const { return account_.layers(); }

  // The run begins at this checkpoint.
  void goes_on_from(const std::filesystem::path& folder, const TrainingState& state);
  // The run's checkpoint of `iteration` stands, or will once it is written: no update until then is replayed.
  void goes_back_to(const std::filesystem::path& folder, std::int64_t iteration);

  // `bad`: the last update, whose loss is at fault. `notice` is called with a text for people. All ranks call it, when
  // the checkpoint to go back to stands. EnvironmentError, on all ranks: the replay cannot go on.
  Diagnosis diagnose(std::int64_t bad, const std::function<void(const std::string&)>& notice);

 private:
  std::string fault_of_good_state() const;  // empty: all ranks can go back
  void go_back();
  // Stops where an update parts from the record.
  std::optional<Parting> replay_until(std::int64_t iteration);

  Updates& updates_;
  std::filesystem::path good_folder_;  // empty: the start
  StepRecord record_;                  // of the updates since
  Account account_;
};

}  // namespace teratron
