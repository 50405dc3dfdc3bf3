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

// Blocks that have their offsets, sorted so that the next offset is found quickly. A pipeline's steps have thousands of
// blocks. Most live for a short while, and they are placed nearly in the order of time, so blocks that live near the
// last one placed are kept in a list of their own, near_.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(int moments) : run_(moments / kRuns + 1), begin_in_(kRuns) {}

  void add(const Placed& block) {
    all_.push_back(block);
    begin_in_[run_of(block.first)].push_back(block);
    if (is_near(block)) near_.insert(std::upper_bound(near_.begin(), near_.end(), block), block);
  }

  // The lowest offset at which `bytes` bytes overlap no block that lives at the same time as `block`.
  std::int64_t lowest_offset(const Placed& block, std::int64_t bytes) {
    move_to(run_of(block.first), run_of(block.last));
    std::int64_t offset = 0;
    for (const Placed& other : near_) {
      if (!other.meets(block)) continue;
      if (offset + bytes <= other.offset) break;
      offset = std::max(offset, other.end);
    }
    return offset;
  }

 private:
  static constexpr int kRuns = 256;  // of consecutive moments
  // near_ is cut to one run before and one after a block's own when it holds more than about this many beside them.
  static constexpr std::size_t kRunsAtHand = 2;

  std::size_t run_of(int moment) const { return static_cast<std::size_t>(std::clamp(moment / run_, 0, kRuns - 1)); }
  bool is_near(const Placed& block) const { return run_of(block.first) < end_ && run_of(block.last) >= begin_; }

  // Makes near_ hold all blocks that live in the runs from `first` to `last`; it may hold others too.
  void move_to(std::size_t first, std::size_t last) {
    if (first < begin_) {  // back in time
      begin_ = first;
      end_ = last + 1;
      near_.clear();
      std::ranges::copy_if(by_offset(), std::back_inserter(near_), [&](const Placed& block) { return is_near(block); });
      return;
    }
    const auto known = std::ssize(near_);
    for (; end_ <= last; ++end_) near_.insert(near_.end(), begin_in_[end_].begin(), begin_in_[end_].end());
    std::sort(near_.begin() + known, near_.end());
    std::inplace_merge(near_.begin(), near_.begin() + known, near_.end());
    const bool is_wide = first > begin_ + kRunsAtHand || end_ - last > kRunsAtHand + (last - first);
    if (!is_wide) return;
    if (first > 0) begin_ = std::max(begin_, first - 1);
    end_ = std::min(end_, last + kRunsAtHand);
    std::erase_if(near_, [&](const Placed& block) { return !is_near(block); });
  }

  const std::vector<Placed>& by_offset() {
    const auto unsorted = all_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(unsorted, all_.end());
    std::inplace_merge(all_.begin(), unsorted, all_.end());
    sorted_ = all_.size();
    return all_;
  }

  const int run_;                                 // moments of a run
  std::vector<std::vector<Placed>> begin_in_;     // by run
  std::vector<Placed> all_, near_;                // near_: those of the runs from begin_ up to end_, by offset
  std::size_t begin_ = 0, end_ = 0, sorted_ = 0;  // sorted_: how many of all_ are in order of offset
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

Tensor::Tensor(Tensor&& other) noexcept
    : buffer_(std::move(other.buffer_)), ref_(std::exchange(other.ref_, TensorRef())) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  std::swap(buffer_, other.buffer_);
  std::swap(ref_, other.ref_);
  return *this;
}

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
  // Blocks that live forever come first and lie at the bottom; then the largest, which are hardest to place.
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
    if (entry.bytes == 0) continue;
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
