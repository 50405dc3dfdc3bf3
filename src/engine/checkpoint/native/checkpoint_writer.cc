#include "checkpoint/native/checkpoint_writer.h"

#include <algorithm>
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
                                   const TrainingState& state, BlockWriter* blocks)
    : root_(std::move(root)),
      final_path_(iteration_folder(root_, state.iteration)),
      folder_(final_path_),
      blocks_(blocks != nullptr ? *blocks : own_blocks_.emplace()) {
  manifest_.run = std::move(run);
  manifest_.model = config;
  manifest_.state = state;
}

// Each part is looked at, added to the checksum and copied while the cache has it.
void CheckpointWriter::write_tensor(const SafetensorsDeclaration& tensor, BlockFile& file, FileRecord& record,
                                    const std::function<void(const ByteSink&)>& fill) {
  constexpr std::size_t kCached = std::size_t{128} << 10;
  Checksum checksum;
  FiniteValues finite(tensor.dtype);
  std::uint64_t written = 0;
  fill([&](std::span<const std::byte> bytes) {
    written += bytes.size();
    for (std::span<const std::byte> part; !bytes.empty(); bytes = bytes.subspan(part.size())) {
      part = bytes.first(std::min(bytes.size(), kCached));
      checksum.update(part);
      finite.update(part);
      file.append(part);
    }
  });
  check_equal(written, bytes_of(tensor), "bytes of a tensor that is written");
  record.tensors[tensor.name] = checksum.digest();
  if (!finite.all() && not_finite_.empty()) not_finite_ = tensor.name;
  record.values += static_cast<std::int64_t>(written) / size_of(tensor.dtype);
}

void CheckpointWriter::write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors,
                                     const Fill& fill) {
  const std::string header = safetensors_header_of(tensors);
  FileRecord record{.bytes = header.size(), .checksum = checksum_of(header)};
  for (const SafetensorsDeclaration& tensor : tensors) record.bytes += bytes_of(tensor);
  BlockFile& file = open_.emplace_back(blocks_, folder_.path() / file_name, record.bytes);
  file.append(std::as_bytes(std::span(header)));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    write_tensor(tensors[i], file, record, [&](const ByteSink& sink) { fill(i, sink); });
  }
  file.end();
  manifest_.files[std::string(file_name)] = std::move(record);
  // Files of a checkpoint that is cut into many are not all open at a time.
  constexpr std::size_t kMostOpen = 8;
  for (; open_.size() > kMostOpen; open_.pop_front()) open_.front().sync_and_close();
}

void CheckpointWriter::add_file(const std::string& file_name, std::string content) {
  manifest_.files[file_name] = {.bytes = content.size(), .checksum = checksum_of(content)};
  small_files_[file_name] = std::move(content);
}

void CheckpointWriter::bring_to_disk() {
  for (const auto& [name, content] : small_files_) {
    BlockFile& file = open_.emplace_back(blocks_, folder_.path() / name, content.size());
    file.append(std::as_bytes(std::span(content)));
    file.end();
  }
  small_files_.clear();
  for (; !open_.empty(); open_.pop_front()) open_.front().sync_and_close();
}

bool CheckpointWriter::is_there_already() const {
  std::error_code error;
  if (!std::filesystem::exists(final_path_ / kManifestFile, error)) return false;
  const Manifest there = read_manifest(final_path_);
  return model_config_to_json(there.model) == model_config_to_json(manifest_.model) && there.files == manifest_.files;
}

std::filesystem::path CheckpointWriter::publish() {
  if (!not_finite_.empty()) throw_not_finite(not_finite_, manifest_.state.iteration);
  bring_to_disk();
  write_manifest(folder_.path(), manifest_);
  folder_.publish();
  write_tracker(root_, manifest_.state.iteration);
  return final_path_;
}

}  // namespace teratron
