#include "ops/cuda/cudnn/cudnn_library.h"

#include <array>

#include "base/error.h"
#include "base/shared_library.h"

namespace teratron::cuda {
namespace {

// Before it, backward passes are wrong unless the number of keys is a multiple of 128 or a padding mask is given.
constexpr std::size_t kOldest = 91600, kNextMajor = 100000;

}  // namespace

CudnnLibrary load_cudnn(std::initializer_list<const char*> names) {
  const SharedLibrary library("cuDNN", names,
                              "install version 9.16 or later, name its folder in LD_LIBRARY_PATH, or leave out "
                              "--cudnn-attention");
  CudnnLibrary loaded = {};
  library.find("cudnnGetVersion", loaded.get_version);
  library.find("cudnnGetErrorString", loaded.get_error_string);
  library.find("cudnnGetLastErrorString", loaded.get_last_error_string);
  library.find("cudnnCreate", loaded.create);
  library.find("cudnnDestroy", loaded.destroy);
  library.find("cudnnSetStream", loaded.set_stream);
  library.find("cudnnBackendCreateDescriptor", loaded.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", loaded.destroy_descriptor);
  library.find("cudnnBackendSetAttribute", loaded.set_attribute);
  library.find("cudnnBackendGetAttribute", loaded.get_attribute);
  library.find("cudnnBackendFinalize", loaded.finalize);
  library.find("cudnnBackendExecute", loaded.execute);
  const std::size_t version = loaded.get_version();
  if (version < kOldest || version >= kNextMajor) {
    throw_environment_error("cuDNN is version {}.{}.{}, and attention needs one from 9.16 on, before 10",
                            version / 10000, version / 100 % 100, version % 100);
  }
  return loaded;
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = load_cudnn({"libcudnn.so.9", TERATRON_CUDNN_LIBRARY});
  return library;
}

void CudnnLibrary::require(cudnnStatus_t status, std::string_view what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> words = {};
  get_last_error_string(words.data(), words.size());
  throw_environment_error("cuDNN failed: {}: {} ({})", what, get_error_string(status), words.data());
}

}  // namespace teratron::cuda
