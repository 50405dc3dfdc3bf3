// The CUDA back end in place of the others, on an emulated GPU or a real one, as the program is linked.
#include "ops/back_ends.h"

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

// Said, not skipped in silence: .gpu/run check shows it.
bool has_cudnn() {
  try {
    make_cuda_backend({.compute_dtype = DType::kF16, .cudnn_attention = KernelUse::kRequired});
    return true;
  } catch (const EnvironmentError& error) {
    fmt::print(stderr, "attention by cuDNN is not tested: {}\n", error.what());
    return false;
  }
}

}  // namespace

std::vector<BackEnd> back_ends() {
  std::vector<BackEnd> all;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    all.push_back({"cuda_" + std::string(name_of(dtype)), [=] { return make_cuda_backend({.compute_dtype = dtype}); },
                   operations, dtype != DType::kF32});
  }
  // Ways to compute that are chosen in a test must not be those of the user's next run.
  static const TemporaryFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    all.push_back({"cuda_timed_" + std::string(name_of(dtype)),
                   [=] { return make_cuda_backend({.compute_dtype = dtype, .gemm_timed_from = 0}); },
                   timed_linear_operations, true});
  }
  static const bool with_cudnn = has_cudnn();
  if (!with_cudnn) return all;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    all.push_back({"cuda_cudnn_" + std::string(name_of(dtype)),
                   [=] { return make_cuda_backend({.compute_dtype = dtype, .cudnn_attention = KernelUse::kRequired}); },
                   library_attention_operations});
  }
  return all;
}

}  // namespace teratron::testing
