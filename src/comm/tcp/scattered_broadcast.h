// A broadcast in which the root sends every byte once: each other member receives a part of it and sends that on to the
// rest. Long views go in segments, of which later ones come in while earlier ones are sent on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/process/transport.h"

namespace teratron {

class ScatteredBroadcast final : public Pending::Work {
 public:
  // `tag` and tag + 1 are this broadcast's.
  ScatteredBroadcast(Transport& transport, void* data, std::int64_t bytes, int root, int tag);
  void wait() override;

 private:
  struct Range {
    std::int64_t begin, bytes;
  };
  struct Segment {
    std::unique_ptr<Requests> own;  // the part that this member sends on
    Range range;                    // of that part
  };
  // The part of the receiver that is `place` places after the root.
  Range part(std::int64_t segment, int place) const;
  void start_root();
  void start_receiver();
  int member(int place) const { return (root_ + place) % size_; }

  std::byte* const data_;
  const std::int64_t bytes_;
  const int rank_, size_, root_, tag_;
  std::int64_t segments_ = 1;
  std::vector<Segment> segment_of_;   // of a receiver, where there are several
  std::unique_ptr<Requests> others_;  // everything else
};

}  // namespace teratron
