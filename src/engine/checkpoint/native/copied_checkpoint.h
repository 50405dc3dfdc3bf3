// The two halves of a save. All ranks copy their tensors to the rank that writes; that rank alone makes a checkpoint of
// the copy, on any of its threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/checkpoint_writer.h"

namespace teratron {

class CopiedCheckpoint {
 public:
  CopiedCheckpoint(std::filesystem::path root, const ModelConfig& config, const TrainingState& state,
                   SaveOptions options, std::span<std::byte> copy);

  CheckpointWriter& writer() { return writer_; }

  void bring_to_disk() { writer_.bring_to_disk(); }
  // Makes it the current checkpoint and deletes those that it makes superfluous; returns its folder.
  std::filesystem::path publish();

 private:
  void prune() const;

  const std::filesystem::path root_;
  const std::int64_t iteration_;
  const SaveOptions options_;
  CheckpointWriter writer_;
};

// The first half of save_checkpoint, with its arguments and errors; every rank of the mesh calls it. The checkpoint on
// the rank that writes, nullptr on the others. `copy`: memory of bytes_of_copied_checkpoint() to copy to, which
// outlives the result; empty: tensors are written as they come.
std::unique_ptr<CopiedCheckpoint> copy_checkpoint(const std::filesystem::path& root, const ModelConfig& config,
                                                  std::span<Parameter* const> parameters, Backend& backend,
                                                  const TrainingState& state, const SaveOptions& options,
                                                  const Mesh& mesh, std::span<std::byte> copy = {});

// Whether this rank writes.
bool writes_checkpoints(const RankCoordinates& place);

// Memory of the copy of a whole checkpoint with the optimizer's slots, of parameters that need not have memory yet.
std::int64_t bytes_of_copied_checkpoint(std::span<Parameter* const> parameters, DType compute_dtype);

}  // namespace teratron
