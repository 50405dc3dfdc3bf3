#include "checkpoint/native/checkpoint_writer.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/safetensors/finite_values.h"

namespace teratron {

void throw_not_finite(const std::string& tensor, std::int64_t iteration) {
  throw_user_error(
      "'{}' holds values that are infinite or not a number after {} updates; no checkpoint was written, and those that "
      "stand are as they were. Training has diverged: lower --lr, lengthen --lr-warmup-iters or set --clip-grad, and "
      "go "
      "on from the last checkpoint",
      tensor, iteration);
}

CheckpointWriter::CheckpointWriter(std::filesystem::path root, RunOrigin run, const ModelConfig& config,
                                   const TrainingState& state)
    : root_(std::move(root)), final_path_(iteration_folder(root_, state.iteration)), folder_(final_path_) {
  manifest_.run = std::move(run);
  manifest_.model = config;
  manifest_.state = state;
}

void CheckpointWriter::write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors,
                                     const Fill& fill) {
  SafetensorsWriter file(folder_.path() / file_name, tensors);
  FileRecord record{.checksum = checksum_of(file.header())};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SafetensorsDeclaration& tensor = tensors[i];
    Checksum checksum;
    FiniteValues finite(tensor.dtype);
    fill(i, [&](std::span<const std::byte> bytes) {
      checksum.update(bytes);
      finite.update(bytes);
      file.write(tensor.name, bytes);
    });
    record.tensors[tensor.name] = checksum.digest();
    if (!finite.all() && not_finite_.empty()) not_finite_ = tensor.name;
    record.values += static_cast<std::int64_t>(bytes_of(tensor)) / size_of(tensor.dtype);
  }
  file.commit();
  record.bytes = file.bytes_written();
  manifest_.files[std::string(file_name)] = std::move(record);
}

void CheckpointWriter::write_file(const std::string& file_name, std::string_view content) {
  write_file_atomically(folder_.path() / file_name, content);
  manifest_.files[file_name] = {.bytes = content.size(), .checksum = checksum_of(content)};
}

bool CheckpointWriter::is_there_already() const {
  std::error_code error;
  if (!std::filesystem::exists(final_path_ / kManifestFile, error)) return false;
  const Manifest there = read_manifest(final_path_);
  return model_config_to_json(there.model) == model_config_to_json(manifest_.model) && there.files == manifest_.files;
}

std::filesystem::path CheckpointWriter::publish() {
  if (!not_finite_.empty()) throw_not_finite(not_finite_, manifest_.state.iteration);
  write_manifest(folder_.path(), manifest_);
  folder_.publish();
  write_tracker(root_, manifest_.state.iteration);
  return final_path_;
}

}  // namespace teratron
