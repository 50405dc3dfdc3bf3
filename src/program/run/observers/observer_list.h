// Several observers of one run.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "train/trainer.h"

namespace teratron {

// Hands every event on to each observer, in order. Updates that take less than a tenth of a second are handed on
// together, ten times a second: an update clears the caches of all observers, so the first report costs several times
// what the next ones do.
class ObserverList final : public TrainingObserver {
 public:
  ObserverList() = default;
  ObserverList(const ObserverList&) = delete;
  ObserverList& operator=(const ObserverList&) = delete;
  ~ObserverList() override;  // hands on what is held back, where an error ended the run

  void add(std::unique_ptr<TrainingObserver> observer) { observers_.push_back(std::move(observer)); }

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, const LossSums& losses) override;
  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override;
  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override;
  void saved(std::int64_t iteration, const std::filesystem::path& folder) override;
  void notice(const std::string& text) override;
  void flush() override;

 private:
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
  std::vector<IterationReport> held_back_;
  double handed_on_at_ = monotonic_seconds();
};

}  // namespace teratron
