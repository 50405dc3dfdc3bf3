#include "settings/backend_settings.h"

namespace teratron {

Faults BackendSettings::faults() const {
  constexpr Flag kBackend{"backend"}, kBf16{"bf16"}, kFp16{"fp16"}, kTf32{"tf32"};
  Faults faults;
  faults.add_if(bf16 && fp16, "{} and {} exclude each other; give one", kBf16, kFp16);
  faults.add_if(tf32 && (bf16 || fp16), "{} is about products of fp32 values and {} has none; give one of them", kTf32,
                bf16 ? kBf16 : kFp16);
  faults.add_if(tf32 && kind != BackendKind::kCuda,
                "{} needs {} cuda: other back ends multiply fp32 values as they are; leave it out", kTf32, kBackend);
  faults.add_if(
      weight_tiles && kind == BackendKind::kCuda,
      "weights in {} (--weights, or --frozen-weights of train) are for CPUs, and {} is cuda; leave one of them out",
      weight_tiles ? name_of(*weight_tiles) : "", kBackend);
  faults.add_if(
      cudnn_attention == KernelUse::kRequired && (kind != BackendKind::kCuda || compute_dtype() == DType::kF32),
      "{} on needs {} cuda and {} or {}: cuDNN has no attention for others", Flag{"cudnn-attention"}, kBackend, kBf16,
      kFp16);
  const bool requires_hopper = hopper_attention == KernelUse::kRequired;
  faults.add_if(requires_hopper && (kind != BackendKind::kCuda || compute_dtype() == DType::kF32),
                "{} on needs {} cuda and {} or {}: its products are of 16-bit values", Flag{"hopper-attention"},
                kBackend, kBf16, kFp16);
  faults.add_if(requires_hopper && cudnn_attention == KernelUse::kRequired,
                "{} and {} on both compute attention; leave one of them out", Flag{"hopper-attention"},
                Flag{"cudnn-attention"});
  return faults;
}

void add_precision_fields(FieldList& list, BackendSettings& s, std::string bf16_help, std::string fp16_help) {
  list.add("bf16", &s.bf16, "", std::move(bf16_help));
  list.add("fp16", &s.fp16, "", std::move(fp16_help));
  list.add("tf32", &s.tf32, "",
           "CUDA: fp32 with matrix products of values rounded to 10 bits of mantissa, several times as fast");
}

void add_training_precision_fields(FieldList& list, BackendSettings& settings) {
  add_precision_fields(list, settings, "weights and activations in bf16; master weights and gradients in fp32",
                       "weights and activations in fp16, with a loss scale; master weights and gradients in fp32");
}

void add_backend_fields(FieldList& list, BackendSettings& s) {
  list.add_choice("backend", s.kind,
                  {{"cpu", BackendKind::kCpu}, {"cuda", BackendKind::kCuda}, {"ref", BackendKind::kReference}},
                  "cuda: NVIDIA's GPUs; ref: the slow reference that the others are tested against");
  list.add_choice("gemm-timing", s.gemm_timing, {{"on", true}, {"off", false}},
                  "CUDA: large matrix products take the fastest algorithm, timed once per machine and kept in the "
                  "user's cache; off: "
                  "the one that cuBLASLt ranks first");
  list.add_choice("cuda-graphs", s.cuda_graphs, {{"on", true}, {"off", false}},
                  "CUDA: launch a layer's pass, or the work of a generated token, as one graph");
  const std::vector<std::pair<std::string, KernelUse>> uses = {
      {"auto", KernelUse::kWherePossible}, {"on", KernelUse::kRequired}, {"off", KernelUse::kOff}};
  list.add_choice("cudnn-attention", s.cudnn_attention, uses,
                  "CUDA: 16-bit attention without dropout by cuDNN, where it supports the call; auto: if cuDNN is "
                  "installed; off: all by Teratron's kernels");
  list.add_choice(
      "hopper-attention", s.hopper_attention, uses,
      "CUDA: other 16-bit attention by Teratron's kernels for Hopper (H100, H200); auto: on such a card, for "
      "heads of up to 128; on: all of it; off: by those for Ampere");
  list.add("guard-memory", &s.guard_memory, "", "keep tensors unreadable outside of operations (a test)")
      .of(FieldScope::kCommand)
      .role = FieldRole::kHiddenFlag;
}

}  // namespace teratron
