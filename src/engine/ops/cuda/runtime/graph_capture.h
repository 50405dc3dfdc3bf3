// A sequence of calls as a CUDA graph: one launch instead of one per kernel.
#pragma once

#include <functional>

#include "ops/backend.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class CapturedGraph final : public Backend::Graph {
 public:
  explicit CapturedGraph(cudaStream_t stream) : stream_(stream) {}
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() override;

  // The first replay() only calls `work`: operations then allocate their memory and choose algorithms. The second
  // captures it. It is captured again when `scratch`, the memory that all operations share, was reallocated.
  void replay(const void* scratch, const std::function<void()>& work);

 private:
  void capture(const std::function<void()>& work);
  void destroy() noexcept;

  const cudaStream_t stream_;
  bool called_ = false;
  const void* scratch_ = nullptr;  // at the time of the capture
  cudaGraphExec_t graph_ = nullptr;
};

// InternalError if the stream is capturing: `what` would happen now, and not at a replay.
void check_not_capturing(cudaStream_t stream, std::string_view what);

}  // namespace teratron::cuda
