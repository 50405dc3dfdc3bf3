// Settings of runs that stand or die: when a watchdog ends them, and how often they are started again.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/faults.h"
#include "options/fields.h"

namespace teratron {

struct FailureSettings {
  std::int64_t watchdog = 600;  // seconds without progress after which a rank stands; 0: never
  std::int64_t restarts = 0;    // of a run that died
  std::string launcher;         // words of the command that starts the ranks; empty: threads

  std::chrono::milliseconds longest_standstill() const { return std::chrono::seconds(watchdog); }
  bool supervises() const { return restarts > 0; }
  std::vector<std::string> launcher_words() const;
  // `save`, `config`: of the command.
  Faults faults(const std::filesystem::path& save, const std::filesystem::path& config) const;
};

void add_watchdog_field(FieldList& list, FailureSettings& settings);
void add_restart_fields(FieldList& list, FailureSettings& settings);

}  // namespace teratron
