#include "tensor/memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

namespace teratron {
namespace {

// Blocks begin at cache-line pairs, so that neighbours never share a line.
constexpr std::int64_t kAlignment = 128;

constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A block that has its offset.
struct Placed {
  std::int64_t offset = 0, end = 0;
  int first = 0, last = 0;
  bool meets(const Placed& other) const { return last >= other.first && other.last >= first; }
  bool operator<(const Placed& other) const { return offset < other.offset; }
};

// Blocks that have their offsets. A pipeline's steps have thousands of blocks, most of which live for a short while:
// the ones that meet a block are found by the runs of moments that it lives in, not among all.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(int moments) : run_(moments / kRuns + 1), begin_in_(kRuns), reach_into_(kRuns) {}

  void add(const Placed& block) {
    all_.push_back(block);
    const std::size_t from = run_of(block.first), to = run_of(block.last);
    begin_in_[from].push_back(block);
    for (std::size_t run = from + 1; run <= to; ++run) reach_into_[run].push_back(block);
  }

  // The lowest offset at which a block of so many bytes meets none of them.
  std::int64_t lowest_offset(const Placed& block, std::int64_t bytes) {
    const std::size_t from = run_of(block.first), to = run_of(block.last);
    std::size_t count = reach_into_[from].size();
    for (std::size_t run = from; run <= to; ++run) count += begin_in_[run].size();
    if (count * kWorthSorting > all_.size()) return lowest_among(sorted(), block, bytes);
    near_.clear();
    const auto take = [&](const std::vector<Placed>& blocks) {
      std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(near_),
                   [&](const Placed& other) { return other.meets(block); });
    };
    take(reach_into_[from]);
    for (std::size_t run = from; run <= to; ++run) take(begin_in_[run]);
    std::sort(near_.begin(), near_.end());
    return lowest_among(near_, block, bytes);
  }

 private:
  static constexpr int kRuns = 256;
  static constexpr std::size_t kWorthSorting = 24;  // so much longer is the way through all of them

  static std::int64_t lowest_among(const std::vector<Placed>& by_offset, const Placed& block, std::int64_t bytes) {
    std::int64_t offset = 0;
    for (const Placed& other : by_offset) {
      if (!other.meets(block)) continue;
      if (offset + bytes <= other.offset) break;
      offset = std::max(offset, other.end);
    }
    return offset;
  }
  const std::vector<Placed>& sorted() {
    const auto unsorted = all_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(unsorted, all_.end());
    if (unsorted != all_.end()) {
      std::inplace_merge(std::upper_bound(all_.begin(), unsorted, *unsorted), unsorted, all_.end());
    }
    sorted_ = all_.size();
    return all_;
  }
  std::size_t run_of(int moment) const { return static_cast<std::size_t>(std::clamp(moment / run_, 0, kRuns - 1)); }

  const int run_;  // moments
  std::vector<Placed> all_, near_;
  std::size_t sorted_ = 0;                                  // of all_: so many are in the order of their offsets
  std::vector<std::vector<Placed>> begin_in_, reach_into_;  // by run: those that begin there, that began before
};

}  // namespace

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kWeights: return "weights";
    case MemoryKind::kGradients: return "gradients";
    case MemoryKind::kOptimizer: return "optimizer";
    case MemoryKind::kActivations: return "activations";
    case MemoryKind::kPackedWeights: return "packed weights";
    case MemoryKind::kWorkspace: return "workspace";
    case MemoryKind::kCommunication: return "communication";
  }
  return "?";
}

void Allocator::copy_out(void* to_host, const void* from, std::int64_t bytes) {
  std::memcpy(to_host, from, static_cast<std::size_t>(bytes));
}

void Allocator::copy_in(void* to, const void* from_host, std::int64_t bytes) {
  std::memcpy(to, from_host, static_cast<std::size_t>(bytes));
}

Buffer::Buffer(Allocator& allocator, std::int64_t bytes)
    : allocator_(&allocator), memory_(allocator.allocate(bytes)), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept
    : allocator_(other.allocator_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (memory_ != nullptr) allocator_->release(memory_);
}

TensorRef Buffer::view(DType dtype, const Shape& shape) const {
  check(shape.elements() * size_of(dtype) <= bytes_, "the view fits its buffer");
  return {memory_, dtype, shape};
}

Tensor::Tensor(Allocator& allocator, DType dtype, const Shape& shape)
    : buffer_(allocator, shape.elements() * size_of(dtype)), ref_(buffer_.view(dtype, shape)) {}

Arena::Block Arena::add(std::string name, MemoryKind kind, DType dtype, const Shape& shape, int first, int last) {
  check(!planned_, "blocks are added before the arena is planned");
  check(first <= last, "a block lives at least one moment");
  const TensorRef view(nullptr, dtype, shape);
  entries_.push_back({std::move(name), kind, view, aligned(view.bytes()), 0, first, last});
  return entries_.size() - 1;
}

void Arena::plan() {
  planned_ = true;
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0);
  // Longest life first keeps what is always there at the bottom; then the largest, which are hardest to place.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto& x = entries_[a];
    const auto& y = entries_[b];
    const bool x_forever = x.last == kForever, y_forever = y.last == kForever;
    return x_forever != y_forever ? x_forever : x.bytes > y.bytes;
  });
  int moments = 0;
  for (const Entry& entry : entries_) moments = std::max(moments, entry.last == kForever ? entry.first : entry.last);
  PlacedBlocks placed(moments);
  for (const std::size_t index : order) {
    Entry& entry = entries_[index];
    Placed block{.first = entry.first, .last = entry.last};
    entry.offset = block.offset = placed.lowest_offset(block, entry.bytes);
    block.end = entry.offset + entry.bytes;
    bytes_ = std::max(bytes_, block.end);
    placed.add(block);
  }
}

void Arena::allocate(Allocator& allocator) {
  check(planned_, "the arena is planned before it is allocated");
  buffer_ = Buffer(allocator, bytes_);
  for (Entry& entry : entries_) entry.view.data = static_cast<std::byte*>(buffer_.data()) + entry.offset;
}

TensorRef Arena::operator[](Block block) const {
  check(block < entries_.size(), "a block of this arena");
  return entries_[block].view;
}

std::int64_t Arena::alive_at(int time) const {
  std::int64_t sum = 0;
  for (const Entry& entry : entries_) {
    if (entry.first <= time && time <= entry.last) sum += entry.bytes;
  }
  return sum;
}

int Arena::fullest_time() const {
  std::map<int, std::int64_t> alive;  // bytes from each moment in which lives begin or have ended
  for (const Entry& entry : entries_) {
    alive[entry.first] += entry.bytes;
    alive[entry.last + 1] -= entry.bytes;
  }
  std::int64_t sum = 0, most = -1;
  for (auto& [moment, bytes] : alive) bytes = sum += bytes;
  int best = 0;
  for (const Entry& entry : entries_) {  // the sum only grows where a life begins
    if (alive[entry.first] <= most) continue;
    most = alive[entry.first];
    best = entry.first;
  }
  return best;
}

std::int64_t Arena::lower_bound() const { return alive_at(fullest_time()); }

std::int64_t Arena::bytes_of(MemoryKind kind) const {
  const int time = fullest_time();
  std::int64_t sum = 0;
  for (const Entry& entry : entries_) {
    if (entry.kind == kind && entry.first <= time && time <= entry.last) sum += entry.bytes;
  }
  return sum;
}

}  // namespace teratron
