#include "tensor/memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace teratron {
namespace {

// Blocks begin at cache-line pairs, so that neighbours never share a line.
constexpr std::int64_t kAlignment = 128;

constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kWeights: return "weights";
    case MemoryKind::kGradients: return "gradients";
    case MemoryKind::kOptimizer: return "optimizer";
    case MemoryKind::kActivations: return "activations";
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
  std::vector<const Entry*> placed;  // by offset
  for (const std::size_t index : order) {
    Entry& entry = entries_[index];
    std::int64_t offset = 0;
    for (const Entry* other : placed) {
      if (other->last < entry.first || entry.last < other->first) continue;
      if (offset + entry.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    entry.offset = offset;
    bytes_ = std::max(bytes_, offset + entry.bytes);
    const auto above = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [](std::int64_t value, const Entry* other) { return value < other->offset; });
    placed.insert(above, &entry);
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
  int best = 0;
  std::int64_t most = -1;
  for (const Entry& entry : entries_) {  // the sum only grows where a life begins
    if (const std::int64_t sum = alive_at(entry.first); sum > most) {
      most = sum;
      best = entry.first;
    }
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
