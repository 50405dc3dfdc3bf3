// checkpoint.json: the contents of a checkpoint and their checksums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/error.h"
#include "checkpoint/native/checkpoint.h"

namespace teratron {

inline constexpr std::string_view kManifestFile = "checkpoint.json";

// A checkpoint whose files differ from the saved ones. To callers a UserError like any other.
class DamagedCheckpoint : public UserError {
 public:
  using UserError::UserError;
};

// A checkpoint that may be intact, but cannot be looked at: no permission, a disk that fails.
class UnreadableCheckpoint : public UserError {
 public:
  using UserError::UserError;
};

// Whether there is something of this name. UnreadableCheckpoint where the system does not say.
bool is_there(const std::filesystem::path& path);

// UnreadableCheckpoint: the file is there and cannot be opened.
void require_readable(const std::filesystem::path& file);

struct FileRecord {
  std::uint64_t bytes = 0;
  std::string checksum;                        // of the whole file; of a safetensors file, of its header
  std::int64_t values = 0;                     // of all its tensors
  std::map<std::string, std::string> tensors;  // name -> checksum of its bytes; empty for other files
  bool operator==(const FileRecord&) const = default;
};

struct Manifest {
  std::string written_by;
  RunOrigin run;
  ModelConfig model;
  TrainingState state;
  std::map<std::string, FileRecord> files;  // by name
};

// The file's first line is the checksum of all that follows it, so that damage to the file itself shows.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// DamagedCheckpoint: missing, or not as it was written. UnreadableCheckpoint. UserError: written by a later version;
// the folder was renamed, and is not of the iteration that its name says.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace teratron
