#include "checkpoint/native/checkpoint.h"

#include <algorithm>

#include "checkpoint/native/folders.h"
#include "checkpoint/native/integrity.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/tensor_files.h"

namespace teratron {

namespace fs = std::filesystem;

CheckpointInfo read_checkpoint_info(const fs::path& path) {
  const fs::path folder = find_checkpoint(path);
  Manifest manifest = with_advice(folder, [&] {
    Manifest read = read_manifest(folder);
    const auto settings = read.files.find(std::string(kSettingsFile));
    if (settings != read.files.end()) check_other_file(folder / kSettingsFile, settings->second);
    return read;
  });
  CheckpointInfo info{.folder = folder,
                      .written_by = manifest.written_by,
                      .run = manifest.run,
                      .model = manifest.model,
                      .state = std::move(manifest.state),
                      .has_optimizer = has_optimizer(manifest),
                      .iterations = iterations_in(root_of(folder))};
  if (manifest.files.contains(std::string(kSettingsFile))) info.settings = folder / kSettingsFile;
  for (const auto& [name, file] : manifest.files) {
    info.files.push_back({name, file.bytes, static_cast<std::int64_t>(file.tensors.size()), file.values});
  }
  return info;
}

CheckpointVerification verify_checkpoint(const fs::path& path) {
  CheckpointVerification report{.folder = find_checkpoint(path)};
  Manifest manifest;
  try {
    manifest = read_manifest(report.folder);
  } catch (const DamagedCheckpoint& damaged) {
    report.faults.emplace_back(damaged.what());
    return report;
  }
  for (const auto& [name, file] : manifest.files) {
    ++report.files;
    report.tensors += static_cast<std::int64_t>(file.tensors.size());
    report.bytes += file.bytes;
    for (std::string& fault : faults_of_file(report.folder / name, file)) report.faults.push_back(std::move(fault));
  }
  return report;
}

}  // namespace teratron
