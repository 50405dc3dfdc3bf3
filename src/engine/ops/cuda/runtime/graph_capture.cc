#include "ops/cuda/runtime/graph_capture.h"

#include <algorithm>

#include "base/error.h"

namespace teratron::cuda {
namespace {

// Until end(), the stream adds queued work to a graph instead of running it.
class StreamCapture {
 public:
  // Mode thread-local: other threads may allocate meanwhile.
  explicit StreamCapture(cudaStream_t stream) : stream_(stream) {
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "the start of a capture");
  }
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;
  ~StreamCapture() {
    if (!ended_) end();  // work threw: the stream must be usable again
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  // Null where the device has no memory for one more graph.
  cudaGraphExec_t finish() {
    require(end(), "a capture");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph_, 0);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // and forget it
      return nullptr;
    }
    require(status, "a captured graph");
    return executable;
  }

 private:
  cudaError_t end() {
    ended_ = true;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph_);
    if (status != cudaSuccess) cudaGetLastError();  // and forget it
    return status;
  }

  const cudaStream_t stream_;
  bool ended_ = false;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

CapturedGraph::~CapturedGraph() { destroy(); }

void CapturedGraph::destroy() noexcept {
  if (graph_ == nullptr) return;
  cudaStreamSynchronize(stream_);  // it may be running
  cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
  meter_->add(-bytes_);
  bytes_ = 0;
}

void CapturedGraph::replay(const void* scratch, const std::function<void()>& work) {
  if (!called_ || has_no_memory_) {
    work();
    called_ = true;
    return;
  }
  if (scratch != scratch_) destroy();
  if (graph_ == nullptr) capture(work);
  scratch_ = scratch;
  if (graph_ == nullptr) return replay(scratch, work);
  require(cudaGraphLaunch(graph_, stream_), "the launch of a graph");
}

void CapturedGraph::capture(const std::function<void()>& work) {
  StreamCapture capture(stream_);
  work();
  const std::int64_t before = free_memory();
  graph_ = capture.finish();
  bytes_ = std::max<std::int64_t>(0, before - free_memory());
  meter_->add(bytes_);
  has_no_memory_ = graph_ == nullptr;
}

void check_not_capturing(cudaStream_t stream, std::string_view what) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status), "whether a stream is capturing");
  check(status == cudaStreamCaptureStatusNone, what);
}

}  // namespace teratron::cuda
