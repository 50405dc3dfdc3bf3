// Large files written by threads of their own while the caller goes on. The caller fills blocks of memory; the threads
// write them to their places (direct_file.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/files/direct_file.h"
#include "base/host/huge_pages.h"
#include "base/host/progress_count.h"

namespace teratron {

class BlockFile;

// The blocks and the threads. It must outlive its files.
class BlockWriter {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
  static constexpr std::size_t kFewBlocks = 4;  // keep the disk busy

  // Takes the blocks as they are first used. EnvironmentError where the system refuses.
  explicit BlockWriter(std::size_t blocks = kFewBlocks);
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;
  ~BlockWriter();

 private:
  friend class BlockFile;
  struct Task {
    BlockFile* file;
    std::byte* block;
    std::size_t bytes;
    std::uint64_t offset;
  };
  std::byte* take_block();  // waits until one is free
  void write(const Task& task);
  void start_thread();
  void forget(BlockFile& file);          // drops its waiting tasks, then waits for those under way
  void wait_for(const BlockFile& file);  // until all its tasks have been written, or failed
  void run();

  HugePages memory_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<std::byte*> free_;
  std::deque<Task> waiting_;
  bool ends_ = false;
  std::vector<std::thread> threads_;  // started when they are first needed
};

// A new file, written from its beginning to its end. Its bytes and its name are on the disk after sync_and_close();
// without that call its content is undefined. Failures are EnvironmentErrors, as AtomicFile's.
class BlockFile {
 public:
  // Reserves `bytes`, so that a full disk fails here. A thread appends to one file at a time.
  BlockFile(BlockWriter& writer, std::filesystem::path path, std::uint64_t bytes);
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;
  ~BlockFile();

  void append(std::span<const std::byte> bytes);  // waits where all blocks are in use
  void end();                                     // all bytes have been appended; they need not be written yet
  void sync_and_close();                          // waits for the threads, then for the disk

 private:
  friend class BlockWriter;
  void pass_on();

  BlockWriter& writer_;
  DirectFile file_;
  const std::uint64_t size_;
  ProgressCount* const progress_ = ProgressCount::of_thread();  // of the rank that may come to wait for the writers
  std::byte* block_ = nullptr;                                  // block being filled
  std::size_t filled_ = 0;
  std::uint64_t offset_ = 0;  // of block_ in the file

  // Guarded by the writer's mutex.
  std::size_t under_way_ = 0;
  int error_ = 0;
};

}  // namespace teratron
