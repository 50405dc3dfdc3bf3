#include "run/observers/observer_list.h"

#include <exception>

namespace teratron {
namespace {

constexpr double kHeldBack = 0.1;  // seconds

}  // namespace

ObserverList::~ObserverList() {
  try {
    flush();
  } catch (const std::exception&) {
    // The error that ended the run is reported instead.
  }
}

void ObserverList::iteration(const IterationReport& report) {
  held_back_.push_back(report);
  if (monotonic_seconds() - passed_on_at_ >= kHeldBack) flush();
}

void ObserverList::flush() {
  for (const IterationReport& report : std::exchange(held_back_, {})) {
    for (const auto& observer : observers_) observer->iteration(report);
  }
  for (const auto& observer : observers_) observer->flush();
  passed_on_at_ = monotonic_seconds();
}

void ObserverList::validation(std::int64_t iteration, const LossSums& losses) {
  for (const auto& observer : observers_) observer->validation(iteration, losses);
}

void ObserverList::scored(std::int64_t iteration, std::span<const TaskScore> scores) {
  for (const auto& observer : observers_) observer->scored(iteration, scores);
}

void ObserverList::sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) {
  for (const auto& observer : observers_) observer->sample(iteration, prompt, tokens);
}

void ObserverList::saved(std::int64_t iteration, const std::filesystem::path& folder) {
  for (const auto& observer : observers_) observer->saved(iteration, folder);
}

void ObserverList::notice(const std::string& text) {
  flush();
  for (const auto& observer : observers_) observer->notice(text);
}

}  // namespace teratron
