// cuDNN, loaded when it is first asked for: a program that was built with it starts on machines that have none. Only
// its headers are needed to build.
#pragma once

#include <cudnn.h>

#include <initializer_list>
#include <string_view>

namespace teratron::cuda {

// The entry points that we call ourselves, by the names of the library's documentation.
struct CudnnLibrary {
  decltype(&cudnnGetErrorString) get_error_string;
  decltype(&cudnnGetLastErrorString) get_last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  void* handle;  // dlopen's

  // EnvironmentError that says what failed, with the status and the library's own words, unless it is success.
  void require(cudnnStatus_t status, std::string_view what) const;
};

// Loaded once in a process, for cudnn-frontend too. EnvironmentError where it is not found, or too old.
const CudnnLibrary& cudnn_library();

// The library's state for one stream of the current device. EnvironmentError as cudnn_library(), and where it does not
// start.
class CudnnHandle {
 public:
  explicit CudnnHandle(cudaStream_t stream);
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle();
  operator cudnnHandle_t() const { return handle_; }  // NOLINT: it is one

 private:
  cudnnHandle_t handle_ = nullptr;
};

// Loads the first of these file names that dlopen finds, as cudnn_library() does. For tests.
CudnnLibrary load_cudnn(std::initializer_list<const char*> names);

}  // namespace teratron::cuda
