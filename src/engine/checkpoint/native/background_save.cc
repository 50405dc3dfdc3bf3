#include "checkpoint/native/background_save.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"

namespace teratron {

namespace fs = std::filesystem;

namespace {

// Threads that train come first; where they take all processors, this one still gets a hundredth. Advice only.
void give_way() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19); }

}  // namespace

BackgroundSave::BackgroundSave(std::int64_t bytes) {
  if (bytes > 0) copy_.emplace(static_cast<std::size_t>(bytes), /*now=*/true);
}

BackgroundSave::~BackgroundSave() {
  if (!thread_.joinable()) return;
  decide(Decision::kDropped);
  thread_.join();
}

void BackgroundSave::decide(Decision decision) {
  const std::scoped_lock lock(mutex_);
  if (decision_ != Decision::kOpen) return;
  decision_ = decision;
  changed_.notify_all();
}

void BackgroundSave::begin(const fs::path& root, const ModelConfig& config, std::span<Parameter* const> parameters,
                           Backend& backend, const TrainingState& state, const SaveOptions& options, const Mesh& mesh) {
  check(!thread_.joinable(), "one save at most is under way");
  std::unique_ptr<CopiedCheckpoint> copy = copy_checkpoint(root, config, parameters, backend, state, options, mesh,
                                                           copy_ ? copy_->bytes() : std::span<std::byte>());
  if (!copy) return;
  decision_ = Decision::kOpen;
  done_ = false;
  thread_ = std::thread([this, owned = std::move(copy)]() mutable { run(std::move(owned)); });
}

void BackgroundSave::release() {
  if (thread_.joinable()) decide(Decision::kReleased);
}

void BackgroundSave::run(std::unique_ptr<CopiedCheckpoint> copy) {
  give_way();
  fs::path folder;
  std::exception_ptr error;
  try {
    folder = finish(std::move(copy));
  } catch (...) {
    error = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  folder_ = std::move(folder);
  error_ = error;
  done_ = true;
  changed_.notify_all();
}

fs::path BackgroundSave::finish(std::unique_ptr<CopiedCheckpoint> copy) {
  copy->bring_to_disk();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return decision_ != Decision::kOpen; });
    if (decision_ == Decision::kDropped) return {};
  }
  return copy->publish();
}

std::optional<fs::path> BackgroundSave::finished() {
  {
    const std::scoped_lock lock(mutex_);
    if (!done_) return std::nullopt;
  }
  return join();
}

std::optional<fs::path> BackgroundSave::wait() {
  {
    const std::scoped_lock lock(mutex_);
    check(!thread_.joinable() || done_ || decision_ == Decision::kReleased, "a save that is waited for was released");
  }
  return join();
}

std::optional<fs::path> BackgroundSave::join() {
  if (!thread_.joinable()) return std::nullopt;
  thread_.join();
  done_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::move(folder_);
}

}  // namespace teratron
