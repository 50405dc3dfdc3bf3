#include "checkpoint/native/checkpoint_writer.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/files/direct_file.h"
#include "base/files/file.h"
#include "base/host/copy_past_caches.h"
#include "base/host/threads.h"
#include "base/round_up.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/tensor_check.h"

namespace teratron {

namespace {

// The record of a file whose tensors have not been checked yet: without their checksums and number of values.
FileRecord record_of(const std::string& header, const std::vector<SafetensorsDeclaration>& tensors) {
  FileRecord record{.bytes = header.size(), .checksum = checksum_of(header)};
  for (const SafetensorsDeclaration& tensor : tensors) record.bytes += bytes_of(tensor);
  return record;
}

// A tensor and the place of its copy, which may be its own.
class TensorCopy {
 public:
  TensorCopy(std::span<const std::byte> from, std::span<std::byte> to, DType dtype)
      : from_(from), to_(to), check_(dtype) {}

  void make() {
    if (from_.data() == to_.data()) return check_.update(from_);
    check_.update(from_, [to = to_](std::span<const std::byte> part) mutable {
      copy_past_caches(to, part);
      to = to.subspan(part.size());
    });
  }
  std::size_t bytes() const { return to_.size(); }
  const TensorCheck& check() const { return check_; }

 private:
  std::span<const std::byte> from_;
  std::span<std::byte> to_;
  TensorCheck check_;
};

struct Share {
  std::vector<TensorCopy*> copies;
  std::size_t bytes = 0;
};

// A share for each thread, of about as many bytes: a tensor has one checksum, and loops expect tasks of the same length
// (ContentionGuard).
std::vector<Share> shares_of(std::deque<TensorCopy>& copies) {
  std::vector<TensorCopy*> largest_first;
  for (TensorCopy& copy : copies) largest_first.push_back(&copy);
  std::ranges::stable_sort(largest_first, std::greater<>{}, &TensorCopy::bytes);
  std::vector<Share> shares(static_cast<std::size_t>(thread_count()));
  for (TensorCopy* const copy : largest_first) {
    Share& least = *std::ranges::min_element(shares, {}, &Share::bytes);
    least.copies.push_back(copy);
    least.bytes += copy->bytes();
  }
  return shares;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::filesystem::path root, RunOrigin run, const ModelConfig& config,
                                   const TrainingState& state, std::span<std::byte> copy)
    : root_(std::move(root)), final_path_(iteration_folder(root_, state.iteration)), folder_(final_path_), copy_(copy) {
  manifest_.run = std::move(run);
  manifest_.model = config;
  manifest_.state = state;
}

void CheckpointWriter::note_tensor(const SafetensorsDeclaration& tensor, const TensorCheck& check, FileRecord& record) {
  check_equal(check.bytes(), bytes_of(tensor), "bytes of a tensor that is saved");
  record.tensors[tensor.name] = check.checksum();
  if (!check.is_finite() && not_finite_.empty()) not_finite_ = tensor.name;
  record.values += static_cast<std::int64_t>(check.bytes()) / size_of(tensor.dtype);
}

void CheckpointWriter::write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors,
                                     const Fill& fill) {
  const std::string header = safetensors_header_of(tensors);
  FileRecord record = record_of(header, tensors);
  if (!blocks_) blocks_.emplace();
  BlockFile& file = open_.emplace_back(*blocks_, folder_.path() / file_name, record.bytes);
  file.append(std::as_bytes(std::span(header)));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorCheck check(tensors[i].dtype);
    const auto append = [&](std::span<const std::byte> part) { file.append(part); };
    fill(i, [&](std::span<const std::byte> bytes) { check.update(bytes, append); });
    note_tensor(tensors[i], check, record);
  }
  file.end();
  manifest_.files[std::string(file_name)] = std::move(record);
  // Files of a checkpoint that is cut into many are not all open at a time.
  constexpr std::size_t kMostOpen = 8;
  for (; open_.size() > kMostOpen; open_.pop_front()) open_.front().sync_and_close();
}

std::size_t CheckpointWriter::bytes_of_copy(const std::vector<SafetensorsDeclaration>& tensors) {
  const FileRecord record = record_of(safetensors_header_of(tensors), tensors);
  return round_up(static_cast<std::size_t>(record.bytes), DirectFile::kSector);
}

void CheckpointWriter::copy_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors,
                                    const Locate& locate) {
  const std::string header = safetensors_header_of(tensors);
  FileRecord record = record_of(header, tensors);
  const std::size_t taken = bytes_of_copy(tensors);
  check(taken <= copy_.size(), "the copy of a checkpoint has memory");
  const std::span<std::byte> file = copy_.first(record.bytes);
  copy_ = copy_.subspan(taken);
  std::ranges::copy(std::as_bytes(std::span(header)), file.begin());
  std::deque<TensorCopy> copies;
  std::size_t at = header.size();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<std::byte> room = file.subspan(at, bytes_of(tensors[i]));
    copies.emplace_back(locate(i, room), room, tensors[i].dtype);
    at += room.size();
  }
  const std::vector<Share> shares = shares_of(copies);
  parallel_for(std::ssize(shares), 1, [&](std::int64_t i, std::int64_t) {
    for (TensorCopy* const copy : shares[static_cast<std::size_t>(i)].copies) copy->make();
  });
  for (std::size_t i = 0; i < tensors.size(); ++i) note_tensor(tensors[i], copies[i].check(), record);
  copied_files_.push_back({std::string(file_name), file});
  manifest_.files[std::string(file_name)] = std::move(record);
}

void CheckpointWriter::add_file(const std::string& file_name, std::string content) {
  manifest_.files[file_name] = {.bytes = content.size(), .checksum = checksum_of(content)};
  small_files_[file_name] = std::move(content);
}

void CheckpointWriter::bring_to_disk() {
  for (const auto& [name, content] : small_files_) {
    write_directly(folder_.path() / name, std::as_bytes(std::span(content)));
  }
  small_files_.clear();
  for (const CopiedFile& file : copied_files_) write_directly(folder_.path() / file.name, file.bytes);
  copied_files_.clear();
  for (; !open_.empty(); open_.pop_front()) open_.front().sync_and_close();
}

bool CheckpointWriter::is_there_already() const {
  std::error_code error;
  if (!std::filesystem::exists(final_path_ / kManifestFile, error)) return false;
  const Manifest there = read_manifest(final_path_);
  return model_config_to_json(there.model) == model_config_to_json(manifest_.model) && there.files == manifest_.files;
}

std::filesystem::path CheckpointWriter::publish() {
  if (!not_finite_.empty()) {
    throw_user_error(
        "'{}' would hold values that are infinite or not a number in '{}'; nothing was written. The weights that it is "
        "made of hold such values, or larger ones than it can",
        not_finite_, root_.string());
  }
  bring_to_disk();
  write_manifest(folder_.path(), manifest_);
  folder_.publish();
  write_tracker(root_, manifest_.state.iteration);
  return final_path_;
}

std::filesystem::path CheckpointWriter::publish_as_only() {
  std::error_code error;
  if (std::filesystem::exists(final_path_, error) && !is_there_already()) throw_holds_checkpoint(root_);
  return publish();
}

}  // namespace teratron
