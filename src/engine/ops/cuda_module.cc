#include "ops/cuda_module.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host/shared_library.h"
#include "ops/cuda_interface.h"

namespace teratron {
namespace {

constexpr const char* kFile = "libteratron_cuda.so";

// Beside the program in a build folder; in lib/teratron beside bin where it was installed. A program of the library's
// users has the library's lib/teratron on its path (packaging/CMakeLists.txt).
const CudaModule& module_of_this_program() {
  static const CudaModule& module = []() -> const CudaModule& {
    const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::vector<std::filesystem::path> candidates = {folder / kFile, folder.parent_path() / "lib" / "teratron" / kFile};
    std::error_code ignored;
    for (const std::filesystem::path& other : library_folders()) {
      if (std::filesystem::exists(other / kFile, ignored)) candidates.push_back(other / kFile);
    }
    return load_cuda_module(candidates);
  }();
  return module;
}

}  // namespace

const CudaModule& load_cuda_module(std::span<const std::filesystem::path> candidates) {
  const auto path = std::find_if(candidates.begin(), candidates.end(), [](const std::filesystem::path& candidate) {
    std::error_code ignored;
    return std::filesystem::exists(candidate, ignored);
  });
  if (path == candidates.end()) {
    std::vector<std::string> names;
    for (const std::filesystem::path& candidate : candidates) names.push_back(candidate.string());
    throw_environment_error(
        "this program has no back end cuda: there is no module at {}; install the CUDA toolkit (12 or later) and build "
        "with cmake -DTERATRON_CUDA=ON, or use --backend cpu",
        fmt::join(names, " nor at "));
  }
  const SharedLibrary library("the back end cuda", {path->c_str()},
                              "install the CUDA toolkit's libraries or add their folder to LD_LIBRARY_PATH, or use "
                              "--backend cpu");
  CudaModuleEntry entry = nullptr;
  library.find(kCudaModuleEntry, entry);
  const CudaModule& module = *entry();
  if (module.interface != kCudaInterface) {
    throw_environment_error(
        "{} is of another version than this program (it has interface {}, the program {}); build both together, or use "
        "--backend cpu",
        path->string(), module.interface, kCudaInterface);
  }
  return module;
}

int cuda_devices() {
  try {
    return module_of_this_program().devices();
  } catch (const EnvironmentError&) {
    return 0;  // make_cuda_backend() gives the reason
  }
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  return std::unique_ptr<Backend>(module_of_this_program().make_backend(options));
}

}  // namespace teratron
