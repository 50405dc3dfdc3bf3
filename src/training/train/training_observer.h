// Events of a run, for those who report it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "tasks/task.h"
#include "train/updates.h"

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

}  // namespace teratron
