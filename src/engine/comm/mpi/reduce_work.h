// The all-reduce and reduce-scatter of processes. Each rank receives the others' values of its own part, reduces them
// in the ranks' order and, in an all-reduce, sends the result to the others. A ring moves as many bytes, in 2 (R - 1)
// steps instead of two. Long views go in segments: the next two are under way while one is reduced.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_requests.h"

namespace teratron {

// Receive buffers of one segment, kept for the next collective. Used by the rank's own thread alone.
class ScratchPool {
 public:
  using Block = std::unique_ptr<std::byte[]>;
  Block take();
  void give(Block block) { free_.push_back(std::move(block)); }

 private:
  std::vector<Block> free_;
};

// `in` and `out` as given to a reduce-scatter; the same view makes it an all-reduce.
class ReduceWork final : public Pending::Work {
 public:
  // `requests` makes empty requests of the group; tag and tag + 1 belong to this collective.
  ReduceWork(const std::function<std::unique_ptr<MpiRequests>()>& requests, int rank, int size, int tag,
             ScratchPool& pool, const TensorRef& out, const TensorRef& in, ReduceOp op);
  void wait() override;

 private:
  struct Range {  // of elements
    std::int64_t begin, count;
  };
  struct Segment {
    std::unique_ptr<MpiRequests> scattered, gathered;
    ScratchPool::Block scratch;
  };
  Range part(std::int64_t segment, int rank) const;  // in `in`
  void start_segment(std::int64_t segment);
  void finish_segment(std::int64_t segment);
  std::byte* at(const TensorRef& view, std::int64_t element) const;

  const int rank_, size_, tag_;
  ScratchPool& pool_;
  const TensorRef out_, in_;
  const ReduceOp op_;
  const bool everywhere_;                // an all-reduce
  std::int64_t per_segment_, segments_;  // elements of a rank's part (reduce-scatter) or of the view (all-reduce)
  std::vector<Segment> segment_of_;
};

}  // namespace teratron
