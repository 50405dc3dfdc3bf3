#include "ops/cuda/cudnn/cudnn_library.h"

#include <array>

#include "base/error.h"
#include "base/host/shared_library.h"

// Handle in which cudnn-frontend, whose headers declare it, looks up every function of cuDNN.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace teratron::cuda {
namespace {

// Before it, backward passes are wrong unless the number of keys is a multiple of 128 or a padding mask is given.
constexpr std::size_t kOldest = 91600, kNextMajor = 100000;

}  // namespace

CudnnLibrary load_cudnn(std::initializer_list<const char*> names) {
  const SharedLibrary library("cuDNN", names,
                              "install version 9.16 or later, name its folder in LD_LIBRARY_PATH, or leave out "
                              "--cudnn-attention on");
  decltype(&cudnnGetVersion) get_version = nullptr;
  library.find("cudnnGetVersion", get_version);
  const std::size_t version = get_version();
  if (version < kOldest || version >= kNextMajor) {
    throw_environment_error("cuDNN is version {}.{}.{}, and attention needs one from 9.16 on, before 10",
                            version / 10000, version / 100 % 100, version % 100);
  }
  CudnnLibrary loaded = {.handle = library.handle()};
  library.find("cudnnGetErrorString", loaded.get_error_string);
  library.find("cudnnGetLastErrorString", loaded.get_last_error_string);
  library.find("cudnnCreate", loaded.create);
  library.find("cudnnDestroy", loaded.destroy);
  library.find("cudnnSetStream", loaded.set_stream);
  return loaded;
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = [] {
    const CudnnLibrary loaded = load_cudnn({"libcudnn.so.9", TERATRON_CUDNN_LIBRARY});
    cudnn_frontend::cudnn_dlhandle = loaded.handle;
    return loaded;
  }();
  return library;
}

void CudnnLibrary::require(cudnnStatus_t status, std::string_view what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> words = {};
  get_last_error_string(words.data(), words.size());
  throw_environment_error("cuDNN failed: {}: {} ({})", what, get_error_string(status), words.data());
}

CudnnHandle::CudnnHandle(cudaStream_t stream) {
  const CudnnLibrary& library = cudnn_library();
  library.require(library.create(&handle_), "its start");
  const cudnnStatus_t status = library.set_stream(handle_, stream);
  if (status == CUDNN_STATUS_SUCCESS) return;
  library.destroy(handle_);
  library.require(status, "its stream");
}

CudnnHandle::~CudnnHandle() { cudnn_library().destroy(handle_); }

}  // namespace teratron::cuda
