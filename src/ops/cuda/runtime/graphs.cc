#include "ops/cuda/runtime/graphs.h"

#include "base/error.h"

namespace teratron::cuda {
namespace {

// What a stream is given is kept instead of done, until end().
class Recording {
 public:
  // Other threads may take memory meanwhile.
  explicit Recording(cudaStream_t stream) : stream_(stream) {
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "the start of a recording");
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (!ended_) end();  // work threw: the stream must be usable again
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  cudaGraphExec_t finish() {
    require(end(), "a recording");
    cudaGraphExec_t executable = nullptr;
    require(cudaGraphInstantiate(&executable, graph_, 0), "what was recorded");
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

RecordedWork::~RecordedWork() { forget(); }

void RecordedWork::forget() noexcept {
  if (graph_ == nullptr) return;
  cudaStreamSynchronize(stream_);  // it may be under way
  cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
}

void RecordedWork::run(const void* scratch, const std::function<void()>& work) {
  if (!called_) {
    work();
    called_ = true;
    return;
  }
  if (scratch != scratch_) forget();
  if (graph_ == nullptr) record(work);
  scratch_ = scratch;
  require(cudaGraphLaunch(graph_, stream_), "the launch of what was recorded");
}

void RecordedWork::record(const std::function<void()>& work) {
  Recording recording(stream_);
  work();
  graph_ = recording.finish();
}

void check_not_recorded(cudaStream_t stream, std::string_view what) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status), "whether a stream is recorded");
  check(status == cudaStreamCaptureStatusNone, what);
}

}  // namespace teratron::cuda
