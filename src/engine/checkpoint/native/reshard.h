// Rewriting a checkpoint into files of another size. Any layout of ranks reads any checkpoint as it is (tensors are
// stored whole, by global name), so there is nothing to cut for one; but file systems, object stores and parallel
// copies have their own wishes.
#pragma once

#include <cstdint>
#include <filesystem>

namespace teratron {

struct ReshardReport {
  std::filesystem::path folder;  // of the new checkpoint
  std::int64_t files = 0, tensors = 0;
  std::uint64_t bytes = 0, largest_file = 0;
};

// Reads the checkpoint at `from` (as load_checkpoint finds it) and compares every byte with its checksum. Writes the
// same tensors, state and tokenizer to a new folder `to`, in files of at most `max_file_bytes` of tensors each; a
// larger tensor has its own file. 0: one file for the model and one for the optimizer. Host memory: one tensor's pages.
// UserError: no checkpoint at `from`, damage (nothing is written then), or `to` holds one already. EnvironmentError: a
// full disk, no permission.
ReshardReport reshard_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to,
                                 std::uint64_t max_file_bytes);

}  // namespace teratron
