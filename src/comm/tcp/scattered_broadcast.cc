#include "comm/tcp/scattered_broadcast.h"

#include <algorithm>

namespace teratron {
namespace {

constexpr std::int64_t kShort = 1 << 16;        // bytes: cheaper to send to everyone
constexpr std::int64_t kPartBytes = 512 << 10;  // of a segment

}  // namespace

ScatteredBroadcast::ScatteredBroadcast(Transport& transport, void* data, std::int64_t bytes, int root, int tag)
    : data_(static_cast<std::byte*>(data)),
      bytes_(bytes),
      rank_(transport.rank()),
      size_(transport.size()),
      root_(root),
      tag_(tag),
      others_(transport.requests(RequestKind::kCollective)) {
  const int receivers = size_ - 1;
  if (receivers == 1 || bytes <= kShort) {
    for (int place = 1; rank_ == root && place < size_; ++place) others_->send(data, bytes, member(place), tag);
    if (rank_ != root) others_->receive(data, bytes, root, tag);
    return;
  }
  segments_ = (bytes + kPartBytes * receivers - 1) / (kPartBytes * receivers);
  for (std::int64_t segment = 0; rank_ != root && segment < segments_; ++segment) {
    segment_of_.push_back({transport.requests(RequestKind::kCollective), {}});
  }
  rank_ == root ? start_root() : start_receiver();
}

ScatteredBroadcast::Range ScatteredBroadcast::part(std::int64_t segment, int place) const {
  const int receivers = size_ - 1;
  const std::int64_t begin = segment * kPartBytes * receivers;
  const std::int64_t bytes = std::min(kPartBytes * receivers, bytes_ - begin);
  const std::int64_t length = (bytes + receivers - 1) / receivers;
  const std::int64_t first = std::min(bytes, (place - 1) * length);
  return {begin + first, std::min(length, bytes - first)};
}

void ScatteredBroadcast::start_root() {
  for (std::int64_t segment = 0; segment < segments_; ++segment) {
    for (int place = 1; place < size_; ++place) {
      const Range range = part(segment, place);
      others_->send(data_ + range.begin, range.bytes, member(place), tag_);
    }
  }
}

void ScatteredBroadcast::start_receiver() {
  const int own = (rank_ + size_ - root_) % size_;
  for (std::int64_t segment = 0; segment < segments_; ++segment) {
    Segment& current = segment_of_[static_cast<std::size_t>(segment)];
    current.range = part(segment, own);
    current.own->receive(data_ + current.range.begin, current.range.bytes, root_, tag_);
    for (int place = 1; place < size_; ++place) {
      if (place == own) continue;
      const Range range = part(segment, place);
      others_->receive(data_ + range.begin, range.bytes, member(place), tag_ + 1);
    }
  }
}

void ScatteredBroadcast::wait() {
  const int own = (rank_ + size_ - root_) % size_;
  for (Segment& segment : segment_of_) {
    segment.own->wait();
    for (int step = 1; step < size_; ++step) {
      const int place = 1 + (own - 1 + step) % (size_ - 1);
      if (place != own) others_->send(data_ + segment.range.begin, segment.range.bytes, member(place), tag_ + 1);
    }
  }
  others_->wait();
}

}  // namespace teratron
