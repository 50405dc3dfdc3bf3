// A sequence of calls as a CUDA graph: one launch instead of one per kernel.
#pragma once

#include <functional>

#include "ops/backend.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class CapturedGraph final : public Backend::Graph {
 public:
  // The meter counts the memory that the device takes for the graph.
  CapturedGraph(cudaStream_t stream, MemoryMeter* meter) : stream_(stream), meter_(meter) {}
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() override;

  // The first replay() only calls `work`: operations then allocate their memory and choose algorithms. The second
  // captures it. It is captured again when `scratch`, the memory that all operations share, was reallocated. Where the
  // device has no memory for the graph, `work` is called each time.
  void replay(const void* scratch, const std::function<void()>& work);

 private:
  void capture(const std::function<void()>& work);
  void destroy() noexcept;

  const cudaStream_t stream_;
  MemoryMeter* const meter_;
  std::int64_t bytes_ = 0;
  bool called_ = false, has_no_memory_ = false;
  const void* scratch_ = nullptr;  // at the time of the capture
  cudaGraphExec_t graph_ = nullptr;
};

// InternalError if the stream is capturing: `what` would happen now, and not at a replay.
void check_not_capturing(cudaStream_t stream, std::string_view what);

}  // namespace teratron::cuda
