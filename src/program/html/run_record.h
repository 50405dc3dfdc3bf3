// Record of a run, from the folder of --save: its log, settings and checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/native/checkpoint.h"
#include "report/curve_chart.h"

namespace teratron {

// Names in the log: bytes that the fullest rank holds, and that were planned for it.
inline constexpr const char *kMemory = "memory_bytes", *kPlannedMemory = "planned_memory_bytes";

struct RunSample {
  std::int64_t iteration = 0;
  std::string prompt, text;
};

struct SavedCheckpoint {
  std::int64_t iteration = 0;
  std::uint64_t bytes = 0;  // of its files
  bool is_best = false;     // the link `best` leads to it
};

struct RunRecord {
  std::filesystem::path folder;
  std::string name;                           // of the folder; see name_apart()
  std::map<std::string, svg::Points> curves;  // numbers of the log by name, over updates: "loss", "validation_loss"
  // Settings of config.toml, in its order: "lr", "0.003". Settings that follow from others have the current
  // checkpoint's values.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<std::string> data;  // words of --data-path: corpora, and in a blend a weight before each
  std::vector<RunSample> samples;
  std::vector<SavedCheckpoint> checkpoints;  // ascending
  std::optional<CheckpointInfo> last;        // of the current checkpoint

  const svg::Points* curve(const std::string& key) const;                  // nullptr: the log has no such number
  std::optional<double> largest(const std::string& key) const;             // of a curve; nothing: there is none
  const std::string* setting(const std::string& key) const;                // nullptr: config.toml has none
  std::int64_t count(const std::string& key, std::int64_t missing) const;  // setting that is an integer
};

// UserError: there is no run in `folder`, or a file of it is damaged.
RunRecord read_run(const std::filesystem::path& folder);

// Gives each run the shortest end of its path that no other has.
void name_apart(std::vector<RunRecord>& runs);

}  // namespace teratron
