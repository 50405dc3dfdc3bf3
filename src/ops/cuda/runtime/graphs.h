// Work of a stream that is done again and again, as a CUDA graph: one launch instead of one a kernel.
#pragma once

#include <functional>

#include "ops/backend.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class RecordedWork final : public Backend::Record {
 public:
  explicit RecordedWork(cudaStream_t stream) : stream_(stream) {}
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;
  ~RecordedWork() override;

  // The first time `work` is only called, which takes the memory and makes the choices that calls of a kind take and
  // make once. Then it is recorded, and again whenever `scratch`, the memory that calls share, has moved.
  void run(const void* scratch, const std::function<void()>& work);

 private:
  void record(const std::function<void()>& work);
  void forget() noexcept;

  const cudaStream_t stream_;
  bool called_ = false;
  const void* scratch_ = nullptr;  // when it was recorded
  cudaGraphExec_t graph_ = nullptr;
};

// InternalError where the stream's work is being recorded: `what` would be done now, and never again.
void check_not_recorded(cudaStream_t stream, std::string_view what);

}  // namespace teratron::cuda
