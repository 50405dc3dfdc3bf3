#include "base/files/block_writer.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace teratron {

BlockWriter::BlockWriter(std::size_t blocks) : memory_(std::max<std::size_t>(2, blocks) * kBlockBytes, /*now=*/false) {
  const std::span<std::byte> bytes = memory_.bytes();
  for (std::size_t at = bytes.size(); at > 0; at -= kBlockBytes) free_.push_back(&bytes[at - kBlockBytes]);
}

BlockWriter::~BlockWriter() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::byte* BlockWriter::take_block() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return !free_.empty(); });
  std::byte* const block = free_.back();
  free_.pop_back();
  return block;
}

void BlockWriter::write(const Task& task) {
  const std::scoped_lock lock(mutex_);
  start_thread();
  ++task.file->under_way_;
  waiting_.push_back(task);
  work_.notify_one();
}

// Starts a writer while there are too few. Where the system refuses the second, one writes alone, more slowly.
void BlockWriter::start_thread() {
  constexpr std::size_t kWriters = 2;  // keep the disk busy; more gained nothing
  if (threads_.size() == kWriters) return;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void BlockWriter::wait_for(const BlockFile& file) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return file.under_way_ == 0; });
}

void BlockWriter::forget(BlockFile& file) {
  {
    const std::scoped_lock lock(mutex_);
    if (file.block_ != nullptr) free_.push_back(std::exchange(file.block_, nullptr));
    std::erase_if(waiting_, [&](const Task& task) {
      if (task.file != &file) return false;
      free_.push_back(task.block);
      --file.under_way_;
      return true;
    });
    done_.notify_all();
  }
  wait_for(file);
}

void BlockWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Task task = waiting_.front();
    waiting_.pop_front();
    int error = task.file->error_;
    if (error == 0) {
      lock.unlock();
      error = task.file->file_.write_at({task.block, task.bytes}, task.offset);
      if (task.file->progress_ != nullptr) task.file->progress_->add();
      lock.lock();
    }
    if (task.file->error_ == 0) task.file->error_ = error;
    --task.file->under_way_;
    free_.push_back(task.block);
    done_.notify_all();
  }
}

BlockFile::BlockFile(BlockWriter& writer, std::filesystem::path path, std::uint64_t bytes)
    : writer_(writer), file_(std::move(path), bytes), size_(bytes) {}

BlockFile::~BlockFile() { writer_.forget(*this); }

void BlockFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (block_ == nullptr) block_ = writer_.take_block();
    const std::size_t count = std::min(bytes.size(), BlockWriter::kBlockBytes - filled_);
    std::memcpy(block_ + filled_, bytes.data(), count);
    filled_ += count;
    bytes = bytes.subspan(count);
    if (filled_ == BlockWriter::kBlockBytes) pass_on();
  }
}

void BlockFile::pass_on() {
  writer_.write({this, block_, filled_, offset_});
  block_ = nullptr;
  offset_ += std::exchange(filled_, 0);
  int error = 0;
  {
    const std::scoped_lock lock(writer_.mutex_);
    error = error_;
  }
  if (error != 0) file_.throw_failure(error);
}

void BlockFile::end() {
  check_equal(offset_ + filled_, size_, "bytes of a file that was declared");
  if (filled_ > 0) pass_on();
}

void BlockFile::sync_and_close() {
  writer_.wait_for(*this);
  if (error_ != 0) file_.throw_failure(error_);
  file_.sync_and_close();
}

}  // namespace teratron
