#include "comm/mpi/reduce_work.h"

#include <algorithm>

#include "base/host/threads.h"
#include "comm/reduce.h"

namespace teratron {
namespace {

constexpr std::int64_t kSegmentBytes = std::int64_t{2} << 20;
constexpr std::int64_t kReduceGrain = 1 << 14;  // elements handed to a thread at a time
constexpr std::int64_t kAhead = 2;              // segments under way while one is reduced
constexpr std::int64_t kPartAlignment = 16;     // elements, so that parts begin where vectors do

}  // namespace

ScratchPool::Block ScratchPool::take() {
  if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(kSegmentBytes));
  Block block = std::move(free_.back());
  free_.pop_back();
  return block;
}

ReduceWork::ReduceWork(const std::function<std::unique_ptr<MpiRequests>()>& requests, int rank, int size, int tag,
                       ScratchPool& pool, const TensorRef& out, const TensorRef& in, ReduceOp op)
    : rank_(rank),
      size_(size),
      tag_(tag),
      pool_(pool),
      out_(out),
      in_(in),
      op_(op),
      everywhere_(out.data == in.data && out.elements() == in.elements()) {
  const std::int64_t most = kSegmentBytes / size_of(in.dtype);
  // A rank's scratch holds its part of a segment from every other rank.
  per_segment_ = everywhere_ ? most / size_ / kPartAlignment * kPartAlignment * size_ : most / size_;
  segments_ = (out.elements() + per_segment_ - 1) / per_segment_;
  for (std::int64_t segment = 0; segment < segments_; ++segment) {
    segment_of_.push_back({requests(), requests(), nullptr});
  }
  start_segment(0);
}

std::byte* ReduceWork::at(const TensorRef& view, std::int64_t element) const {
  return static_cast<std::byte*>(view.data) + element * size_of(view.dtype);
}

ReduceWork::Range ReduceWork::part(std::int64_t segment, int rank) const {
  const std::int64_t begin = segment * per_segment_, count = std::min(per_segment_, out_.elements() - begin);
  if (!everywhere_) return {rank * out_.elements() + begin, count};
  const std::int64_t even = (count + size_ - 1) / size_;
  const std::int64_t length = (even + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  const std::int64_t first = std::min(count, rank * length);
  return {begin + first, std::min(length, count - first)};
}

void ReduceWork::start_segment(std::int64_t segment) {
  Segment& current = segment_of_[static_cast<std::size_t>(segment)];
  current.scratch = pool_.take();
  const std::int64_t bytes = part(segment, rank_).count * size_of(in_.dtype);
  for (int step = 1; step < size_; ++step) {  // everyone begins with another
    const int from = (rank_ + step) % size_, to = (rank_ + size_ - step) % size_;
    current.scattered->receive(current.scratch.get() + from * bytes, bytes, from, tag_);
    const Range theirs = part(segment, to);
    current.scattered->send(at(in_, theirs.begin), theirs.count * size_of(in_.dtype), to, tag_);
  }
}

void ReduceWork::finish_segment(std::int64_t segment) {
  Segment& current = segment_of_[static_cast<std::size_t>(segment)];
  current.scattered->wait();
  const Range own = part(segment, rank_);
  const std::int64_t size = size_of(in_.dtype), bytes = own.count * size;
  std::byte* const result = everywhere_ ? at(in_, own.begin) : at(out_, segment * per_segment_);
  parallel_for(own.count, kReduceGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<const std::byte*> inputs;
    for (int rank = 0; rank < size_; ++rank) {
      inputs.push_back(rank == rank_ ? at(in_, own.begin + begin)
                                     : current.scratch.get() + rank * bytes + begin * size);
    }
    std::byte* const output = result + begin * size;
    reduce_elements(in_.dtype, op_, {&output, 1}, inputs, end - begin);
  });
  pool_.give(std::move(current.scratch));
  for (int step = 1; everywhere_ && step < size_; ++step) {
    const int from = (rank_ + step) % size_, to = (rank_ + size_ - step) % size_;
    const Range theirs = part(segment, from);
    current.gathered->receive(at(in_, theirs.begin), theirs.count * size, from, tag_ + 1);
    current.gathered->send(result, bytes, to, tag_ + 1);
  }
}

void ReduceWork::wait() {
  std::int64_t started = 1;
  for (std::int64_t segment = 0; segment < segments_; ++segment) {
    for (; started < std::min(segments_, segment + 1 + kAhead); ++started) start_segment(started);
    finish_segment(segment);
  }
  for (Segment& segment : segment_of_) segment.gathered->wait();
}

}  // namespace teratron
