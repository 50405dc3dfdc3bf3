#include "checkpoint/native/integrity.h"

#include <ranges>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "checkpoint/native/folders.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

template <class... Args>
[[noreturn]] void damaged(const fs::path& path, fmt::format_string<Args...> format, Args&&... args) {
  throw DamagedCheckpoint(
      fmt::format("'{}' is damaged: {}", path.string(), fmt::format(format, std::forward<Args>(args)...)));
}

void check_size(const fs::path& path, const FileRecord& record) {
  std::error_code error;
  if (!is_there(path) || !fs::is_regular_file(path, error)) {
    throw DamagedCheckpoint(fmt::format("'{}' is missing", path.string()));
  }
  require_readable(path);
  const std::uint64_t bytes = fs::file_size(path, error);
  if (bytes != record.bytes) damaged(path, "it has {} bytes, {} were written", bytes, record.bytes);
}

// Every exception while reading a damaged file is one fault. A file that cannot be read is none.
template <class Body>
void collect(std::vector<std::string>& faults, const Body& body) {
  try {
    body();
  } catch (const UnreadableCheckpoint&) {
    throw;
  } catch (const UserError& error) {
    faults.emplace_back(error.what());
  }
}

bool is_intact(const fs::path& folder) {
  try {
    for (const auto& [name, record] : read_manifest(folder).files) {
      if (!faults_of_file(folder / name, record).empty()) return false;
    }
    return true;
  } catch (const UnreadableCheckpoint&) {
    throw;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

SafetensorsFile open_tensors(const fs::path& path, const FileRecord& record, bool verify) {
  check_size(path, record);
  try {
    SafetensorsFile file(path);
    if (verify && checksum_of(file.header()) != record.checksum) damaged(path, "the checksum of its header differs");
    return file;
  } catch (const DamagedCheckpoint&) {
    throw;
  } catch (const UserError& error) {
    throw DamagedCheckpoint(error.what());
  }
}

void check_tensor(const WeightsFile& file, const SafetensorsEntry& tensor, const FileRecord& record) {
  const auto recorded = record.tensors.find(tensor.name);
  if (recorded == record.tensors.end()) damaged(file.path(), "tensor '{}' has no recorded checksum", tensor.name);
  if (checksum_of(file.bytes(tensor)) != recorded->second) {
    damaged(file.path(), "the checksum of tensor '{}' differs", tensor.name);
  }
}

std::vector<std::string> faults_of_file(const fs::path& path, const FileRecord& record) {
  std::vector<std::string> faults;
  collect(faults, [&] {
    if (record.tensors.empty()) {
      check_size(path, record);
      if (checksum_of(MappedFile(path).bytes()) != record.checksum) damaged(path, "its checksum differs");
      return;
    }
    const SafetensorsFile file = open_tensors(path, record, /*verify=*/true);
    for (const SafetensorsEntry& tensor : file.tensors()) {
      collect(faults, [&] { check_tensor(file, tensor, record); });
      file.release(tensor);
    }
  });
  return faults;
}

void check_other_file(const fs::path& path, const FileRecord& record) {
  const std::vector<std::string> faults = faults_of_file(path, record);
  if (!faults.empty()) throw DamagedCheckpoint(faults.front());
}

std::string earlier_intact(const fs::path& folder) {
  const std::vector<CheckpointName> names = names_of(folder);
  if (names.empty()) return "";
  const fs::path& root = names.front().root;
  for (const std::int64_t iteration : iterations_in(root) | std::views::reverse) {
    if (iteration >= names.front().iteration) continue;
    const fs::path other = iteration_folder(root, iteration);
    try {
      if (!is_intact(other)) continue;
    } catch (const UnreadableCheckpoint& error) {
      return fmt::format("; of the earlier checkpoint '{}' cannot be said whether it is intact: {}", other.string(),
                         error.what());
    }
    return fmt::format(
        "; the earlier checkpoint '{0}' is intact: --load {0} reads it, and train --load {1} --iteration {2} goes on "
        "from there",
        other.string(), root.string(), iteration);
  }
  return "";
}

}  // namespace teratron
