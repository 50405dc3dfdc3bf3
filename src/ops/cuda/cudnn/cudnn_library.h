// cuDNN, loaded when it is first asked for: a program that was built with it starts on machines that have none. Only
// its headers are needed to build.
#pragma once

#include <cudnn_graph.h>

#include <string_view>

namespace teratron::cuda {

// The entry points that are used, by the names of the library's documentation.
struct CudnnLibrary {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) get_error_string;
  decltype(&cudnnGetLastErrorString) get_last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;

  // EnvironmentError that says what failed, with the status and the library's own words, unless it is success.
  void require(cudnnStatus_t status, std::string_view what) const;
};

// Loaded once in a process. EnvironmentError where it is not found, or too old.
const CudnnLibrary& cudnn_library();

// What cudnn_library() does: file names are tried in turn, as dlopen takes them. For tests.
CudnnLibrary load_cudnn(std::initializer_list<const char*> names);

}  // namespace teratron::cuda
