#include "runtime/backend_settings.h"

#include <fmt/format.h>

namespace teratron {

std::vector<std::string> BackendSettings::backend_faults() const {
  std::vector<std::string> faults;
  if (bf16 && fp16) faults.emplace_back("--bf16 and --fp16 exclude each other; give one");
  if (tf32 && (bf16 || fp16)) {
    faults.push_back(fmt::format("--tf32 is about products of fp32 values and --{} has none; give one of them",
                                 bf16 ? "bf16" : "fp16"));
  }
  if (tf32 && backend != BackendKind::kCuda) {
    faults.emplace_back("--tf32 needs --backend cuda: other back ends multiply fp32 values as they are; leave it out");
  }
  if (cudnn_attention && (backend != BackendKind::kCuda || compute_dtype() == DType::kF32)) {
    faults.emplace_back(
        "--cudnn-attention needs --backend cuda and --bf16 or --fp16: cuDNN has no attention for others");
  }
  return faults;
}

void add_precision_fields(FieldList& list, BackendSettings& s, std::string bf16_help, std::string fp16_help) {
  list.add("bf16", &s.bf16, "", std::move(bf16_help));
  list.add("fp16", &s.fp16, "", std::move(fp16_help));
  list.add("tf32", &s.tf32, "",
           "fp32 with matrix products of values rounded to 10 bits of mantissa, several times as fast; of back end "
           "cuda");
}

void add_backend_fields(FieldList& list, BackendSettings& s) {
  list.add_choice("backend", s.backend,
                  {{"cpu", BackendKind::kCpu}, {"cuda", BackendKind::kCuda}, {"ref", BackendKind::kReference}},
                  "cuda is NVIDIA's GPUs; ref the slow reference that the others are tested against");
  list.add_choice(
      "gemm-timing", s.gemm_timing, {{"on", true}, {"off", false}},
      "of back end cuda: large matrix products take the fastest algorithm, timed once on a machine and kept "
      "in the user's cache; off: the one that cuBLASLt thinks best");
  list.add("cudnn-attention", &s.cudnn_attention, "", "of back end cuda: 16-bit attention by cuDNN where it takes it");
  list.add("guard-memory", &s.guard_memory, "", "keep tensors unreadable outside of operations (a test)").role =
      FieldRole::kHiddenFlag;
}

}  // namespace teratron
