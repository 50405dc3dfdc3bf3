// Owners of device memory. Everything is allocated before step 0: first planned (who needs how much, from when to
// when), then taken as one block, so the peak is known and printed before it is reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/communication_stream.h"
#include "tensor/tensor.h"

namespace teratron {

// Where device memory comes from; every back end is one.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(std::int64_t bytes) = 0;  // 64-byte aligned, contents undefined; EnvironmentError if refused
  virtual void release(void* memory) noexcept = 0;

  // Of a device's memory: what tells it apart, on all hosts, from that of other devices; the bytes that are taken of it
  // through this, by allocate() and for its own needs; the most that were at a time; and what allocate() can still hand
  // out. Of the host's: empty, and 0.
  virtual std::string memory_name() const { return {}; }
  virtual std::int64_t taken_bytes() const { return 0; }
  virtual std::int64_t peak_bytes() const { return 0; }
  virtual std::int64_t bytes_left() { return 0; }

  // Whether a host thread may read and write it. If not, it is copied out and in, in turn with what the device does;
  // host memory may be read, and change, when they return.
  virtual bool is_host_memory() const { return true; }
  virtual void copy_out(void* to_host, const void* from, std::int64_t bytes);
  virtual void copy_in(void* to, const void* from_host, std::int64_t bytes);

  // One more order of work in which the device copies and adds up such memory of several ranks: of all of this process,
  // where it reaches them, or of all that channels lead to. Lives as long as the allocator; null where neither is so.
  virtual bool reaches_other_ranks() const { return false; }
  virtual bool has_channels() const { return false; }
  virtual CommunicationStream* add_communication_stream() { return nullptr; }

  // Bracket every access to what was allocated, also one that throws; they nest and may come from several threads at
  // once. For memory that must be opened first (ops/guarded_memory.h).
  virtual void open_memory() {}
  virtual void close_memory() noexcept {}
};

// Owns one block of device memory. Movable.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Allocator& allocator, std::int64_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return memory_; }
  std::int64_t bytes() const { return bytes_; }
  TensorRef view(DType dtype, const Shape& shape) const;  // from the start; must fit

 private:
  Allocator* allocator_ = nullptr;
  void* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

// A tensor with memory of its own.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Allocator& allocator, DType dtype, const Shape& shape);
  const TensorRef& ref() const { return ref_; }
  operator const TensorRef&() const { return ref_; }  // NOLINT: a Tensor is used wherever a view is wanted

 private:
  Buffer buffer_;
  TensorRef ref_;
};

// What a planned block is for; the start-up table adds up by this.
enum class MemoryKind { kWeights, kGradients, kOptimizer, kActivations, kWorkspace, kCommunication };
std::string_view name_of(MemoryKind kind);

// Plans one arena. Blocks live from the start of moment `first` to the end of moment `last` (any integers that order
// the step's events); blocks whose lives don't overlap may share memory. Placement is greedy by size, which is at
// or near the lower bound for the nested lives of a forward and backward pass.
class Arena {
 public:
  using Block = std::size_t;
  static constexpr int kForever = 1 << 30;

  Block add(std::string name, MemoryKind kind, DType dtype, const Shape& shape, int first, int last);
  void plan();                              // decides the offsets; after that, no add()
  void allocate(Allocator& allocator);      // takes the planned block
  TensorRef operator[](Block block) const;  // null data before allocate()

  std::int64_t bytes() const { return bytes_; }  // of the whole arena, after plan()
  std::int64_t lower_bound() const;              // the largest sum of sizes alive at one moment
  std::int64_t bytes_of(MemoryKind kind) const;  // alive at the fullest moment, by kind

 private:
  struct Entry {
    std::string name;
    MemoryKind kind;
    TensorRef view;
    std::int64_t bytes, offset;
    int first, last;
  };
  std::int64_t alive_at(int moment) const;
  int fullest_moment() const;
  std::vector<Entry> entries_;
  std::int64_t bytes_ = 0;
  bool planned_ = false;
  Buffer buffer_;
};

}  // namespace teratron
