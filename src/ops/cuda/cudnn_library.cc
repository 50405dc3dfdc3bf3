#include "ops/cuda/cudnn_library.h"

#include <dlfcn.h>

#include <array>
#include <string>

#include "base/error.h"

namespace teratron::cuda {
namespace {

// Before it, backward passes are wrong unless the number of keys is a multiple of 128 or a padding mask is given.
constexpr std::size_t kOldest = 91600, kNextMajor = 100000;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw_environment_error("the cuDNN library has no function {}; install another", name);
}

// Never unloaded: its own threads and the driver may hold on to it.
void* open(std::initializer_list<const char*> names) {
  std::string reasons;
  for (const char* name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw_environment_error(
      "cuDNN was asked for and cannot be loaded ({}); install it (version 9.16 or later), name its folder in "
      "LD_LIBRARY_PATH, or leave out --cudnn-attention",
      reasons);
}

}  // namespace

CudnnLibrary load_cudnn(std::initializer_list<const char*> names) {
  void* const library = open(names);
  CudnnLibrary loaded = {};
  find(library, "cudnnGetVersion", loaded.get_version);
  find(library, "cudnnGetErrorString", loaded.get_error_string);
  find(library, "cudnnGetLastErrorString", loaded.get_last_error_string);
  find(library, "cudnnCreate", loaded.create);
  find(library, "cudnnDestroy", loaded.destroy);
  find(library, "cudnnSetStream", loaded.set_stream);
  find(library, "cudnnBackendCreateDescriptor", loaded.create_descriptor);
  find(library, "cudnnBackendDestroyDescriptor", loaded.destroy_descriptor);
  find(library, "cudnnBackendSetAttribute", loaded.set_attribute);
  find(library, "cudnnBackendGetAttribute", loaded.get_attribute);
  find(library, "cudnnBackendFinalize", loaded.finalize);
  find(library, "cudnnBackendExecute", loaded.execute);
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
