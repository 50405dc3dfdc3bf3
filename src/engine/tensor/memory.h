// Owners of device memory. Everything is allocated before step 0: an Arena plans every block (its size, and from when
// to when it is used) and allocates one block for all, so the peak is known and printed before it is reached.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/host/host_name.h"
#include "tensor/communication_stream.h"
#include "tensor/tensor.h"

namespace teratron {

// A source of device memory. Every back end is one.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(std::int64_t bytes) = 0;  // 64-byte aligned, contents undefined; EnvironmentError if refused
  virtual void release(void* memory) noexcept = 0;

  // Unique id of the memory, across hosts: of a device, or the host's name.
  virtual std::string memory_name() const { return host_name(); }
  // Use of device memory; 0 for host memory.
  virtual std::int64_t taken_bytes() const { return 0; }  // allocated now, by allocate() and for its own needs
  virtual std::int64_t peak_bytes() const { return 0; }   // the maximum of taken_bytes() so far
  virtual std::int64_t bytes_left() { return 0; }         // that allocate() can still hand out

  // Whether host threads may read and write the memory. If not, copy_out() and copy_in() copy it, in the order of the
  // device's calls. When they return, host memory may be read (copy_out) and changed (copy_in).
  virtual bool is_host_memory() const { return true; }
  virtual void copy_out(void* to_host, const void* from, std::int64_t bytes);
  virtual void copy_in(void* to, const void* from_host, std::int64_t bytes);

  // A further stream of the device, on which collectives copy and add up the memory of several ranks: the ranks of this
  // process if the devices reach each other's memory, or those that channels connect. Null if neither is so. It lives
  // as long as the allocator.
  virtual bool reaches_other_ranks() const { return false; }
  virtual bool has_channels() const { return false; }
  virtual CommunicationStream* add_communication_stream() { return nullptr; }
  virtual std::shared_ptr<OpenChannels> open_channels() { return nullptr; }  // null where there can be none

  // Bracket every access to allocated memory, for memory that must be opened first (ops/guarded_memory.h). Calls nest,
  // come from several threads at once, and are paired even if the access throws (OpenMemory).
  virtual void open_memory() {}
  virtual void close_memory() noexcept {}
};

// An access to memory, which is open while this lives. Null: of memory that needs no opening.
class OpenMemory {
 public:
  explicit OpenMemory(Allocator* memory) : memory_(memory) {
    if (memory_ != nullptr) memory_->open_memory();
  }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  ~OpenMemory() {
    if (memory_ != nullptr) memory_->close_memory();
  }

 private:
  Allocator* const memory_;
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
  Tensor(Tensor&& other) noexcept;  // leaves a null view
  Tensor& operator=(Tensor&& other) noexcept;
  const TensorRef& ref() const { return ref_; }
  operator const TensorRef&() const { return ref_; }  // NOLINT: a Tensor is used wherever a view is wanted

 private:
  Buffer buffer_;
  TensorRef ref_;
};

// The use of a planned block. The start-up table has a row for each.
enum class MemoryKind {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,
  kPackedWeights,  // copies of weights in the order in which products read them
  kWorkspace,
  kCommunication
};
std::string_view name_of(MemoryKind kind);

// Plans one block of memory for many tensors. A tensor lives from time `first` to time `last`, both included; times are
// integers that order the events of a step. Tensors whose lives do not overlap may share memory. Placement is greedy by
// size, which is at or near the lower bound for the nested lives of a forward and backward pass.
class Arena {
 public:
  using Block = std::size_t;
  static constexpr int kForever = 1 << 30;

  Block add(std::string name, MemoryKind kind, DType dtype, const Shape& shape, int first, int last);
  void plan();                              // chooses the offsets; no add() afterwards
  void allocate(Allocator& allocator);      // after plan()
  TensorRef operator[](Block block) const;  // null data before allocate()

  std::int64_t bytes() const { return bytes_; }  // of the whole arena, after plan()
  std::int64_t lower_bound() const;              // the largest sum of the sizes of blocks alive at one time
  std::int64_t bytes_of(MemoryKind kind) const;  // of the blocks alive when that sum is largest

 private:
  struct Entry {
    std::string name;
    MemoryKind kind;
    TensorRef view;
    std::int64_t bytes, offset;
    int first, last;
  };
  std::int64_t alive_at(int time) const;
  int fullest_time() const;
  std::vector<Entry> entries_;
  std::int64_t bytes_ = 0;
  bool planned_ = false;
  Buffer buffer_;
};

}  // namespace teratron
