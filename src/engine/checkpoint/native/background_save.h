// Saves beside training. The caller waits for a copy in memory; a thread brings it to the disk and makes it the current
// checkpoint. The bytes, and the order in which they take their names, are those of save_checkpoint.
//
// The copy takes its name only once release() says so. A trainer tests a checkpoint by the loss of its weights, which
// the next update computes anyway.
#pragma once

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/host/huge_pages.h"
#include "checkpoint/native/copied_checkpoint.h"

namespace teratron {

// Every rank of the mesh has one. The thread calls no collective.
class BackgroundSave {
 public:
  // Takes the memory of the copy, bytes_of_copied_checkpoint() on the rank that writes, 0 on others: the first copy is
  // as fast as later ones. EnvironmentError.
  explicit BackgroundSave(std::int64_t bytes);
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;
  // One that was released is finished, its error lost; another is dropped.
  ~BackgroundSave();

  // Copies; arguments and errors are save_checkpoint's, those of writing apart. None is under way.
  void begin(const std::filesystem::path& root, const ModelConfig& config, std::span<Parameter* const> parameters,
             Backend& backend, const TrainingState& state, const SaveOptions& options, const Mesh& mesh);
  void release();

  // The folder of the checkpoint that has come to stand since the last call. EnvironmentError: it could not be written;
  // nothing remains of it.
  std::optional<std::filesystem::path> finished();
  // Waits for one that was released, if there is one.
  std::optional<std::filesystem::path> wait();

 private:
  enum class Decision { kOpen, kReleased, kDropped };
  void run(std::unique_ptr<CopiedCheckpoint> copy);
  std::filesystem::path finish(std::unique_ptr<CopiedCheckpoint> copy);
  void decide(Decision decision);
  std::optional<std::filesystem::path> join();

  std::optional<HugePages> copy_;
  std::thread thread_;  // of the save under way
  std::mutex mutex_;
  std::condition_variable changed_;
  Decision decision_ = Decision::kOpen;
  bool done_ = false;
  std::filesystem::path folder_;
  std::exception_ptr error_;
};

}  // namespace teratron
