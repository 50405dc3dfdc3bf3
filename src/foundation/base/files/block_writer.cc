#include "base/files/block_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {
namespace {

// Two keep the disk busy; more gained nothing.
constexpr std::size_t kWriters = 2;

// Addresses, places and lengths of direct writes are multiples of it on every disk we know of.
constexpr std::size_t kSector = 4096;

std::byte* map_memory(std::size_t bytes, bool now) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw_environment_error("the system gives no {} MiB of memory to write files from: {}", bytes >> 20,
                            std::strerror(errno));
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  if (now) ::madvise(memory, bytes, MADV_POPULATE_WRITE);  // an older system takes it as it is used
  return static_cast<std::byte*>(memory);
}

}  // namespace

BlockWriter::BlockWriter(std::size_t blocks, bool takes_memory_now)
    : memory_(map_memory(std::max<std::size_t>(2, blocks) * kBlockBytes, takes_memory_now)),
      bytes_(std::max<std::size_t>(2, blocks) * kBlockBytes) {
  for (std::size_t at = bytes_; at > 0; at -= kBlockBytes) free_.push_back(memory_ + at - kBlockBytes);
}

BlockWriter::~BlockWriter() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  ::munmap(memory_, bytes_);
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

// One thread does, if slower.
void BlockWriter::start_thread() {
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
      error = task.file->write_at(task.block, task.bytes, task.offset);
      lock.lock();
    }
    if (task.file->error_ == 0) task.file->error_ = error;
    --task.file->under_way_;
    free_.push_back(task.block);
    done_.notify_all();
  }
}

BlockFile::BlockFile(BlockWriter& writer, std::filesystem::path path, std::uint64_t bytes)
    : writer_(writer), path_(std::move(path)), size_(bytes) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw_write_error(path_, errno);
  if (bytes == 0) return;
  int result = 0;
  do {
    result = ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    const int error = errno;
    ::close(descriptor_);
    throw_write_error(path_, error);
  }
  const int flags = ::fcntl(descriptor_, F_GETFL);
  ::fcntl(descriptor_, F_SETFL, flags | O_DIRECT);  // where it fails, the page cache is written
}

BlockFile::~BlockFile() {
  writer_.forget(*this);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void BlockFile::throw_if_failed(int error) const {
  if (error != 0) throw_write_error(path_, error);
}

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
  throw_if_failed(error);
}

void BlockFile::end() {
  check_equal(offset_ + filled_, size_, "bytes of a file that was declared");
  if (filled_ > 0) pass_on();
}

void BlockFile::stop_direct() { ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_DIRECT); }

int BlockFile::write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) {
  // The end of a file is written through the page cache, so that the file never grows beyond its size.
  if (bytes % kSector != 0) {
    const std::size_t whole = bytes / kSector * kSector;
    if (whole > 0) {
      if (const int error = write_at(from, whole, offset); error != 0) return error;
    }
    stop_direct();
    from += whole, offset += whole, bytes -= whole;
  }
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_, from, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EINVAL && (::fcntl(descriptor_, F_GETFL) & O_DIRECT) != 0) {
      stop_direct();
      continue;
    }
    if (put < 0) return errno;
    const auto done = static_cast<std::size_t>(put);
    if (progress_ != nullptr) progress_->add();
    from += done, offset += done, bytes -= done;
    if (done % kSector != 0) stop_direct();
  }
  return 0;
}

void BlockFile::sync_and_close() {
  writer_.wait_for(*this);
  throw_if_failed(error_);
  if (::fsync(descriptor_) != 0 && errno != EINVAL) throw_write_error(path_, errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_write_error(path_, errno);
}

}  // namespace teratron
