// Comparison of a checkpoint's files with the records of checkpoint.json.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron {

// All functions here throw UnreadableCheckpoint where a file is there and cannot be read.

// Opens a recorded file of tensors. DamagedCheckpoint: missing, of another size, or its header is not what was written.
SafetensorsFile open_tensors(const std::filesystem::path& path, const FileRecord& record, bool verify);

// DamagedCheckpoint unless the tensor's bytes are those that were written.
void check_tensor(const WeightsFile& file, const SafetensorsEntry& tensor, const FileRecord& record);

// Differences between one recorded file and its record, one line each.
std::vector<std::string> faults_of_file(const std::filesystem::path& path, const FileRecord& record);

// DamagedCheckpoint unless a recorded file without tensors is as it was written.
void check_other_file(const std::filesystem::path& path, const FileRecord& record);

// The latest checkpoint before `folder`, under the same root, that is intact in every byte, and how a run goes on
// from there, as the end of a message; empty if there is none. One that cannot be read is named, and none before it.
std::string earlier_intact(const std::filesystem::path& folder);

// Calls `body`; a DamagedCheckpoint that it throws gets the advice of earlier_intact.
template <class Body>
auto with_advice(const std::filesystem::path& folder, const Body& body) {
  try {
    return body();
  } catch (const DamagedCheckpoint& damaged) {
    throw DamagedCheckpoint(damaged.what() + earlier_intact(folder));
  }
}

}  // namespace teratron
