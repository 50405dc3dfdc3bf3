// Settings of the back end and its precision, for every command that runs a model.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/faults.h"
#include "ops/backend.h"
#include "options/fields.h"

namespace teratron {

enum class BackendKind { kCpu, kReference, kCuda };

struct BackendSettings {
  BackendKind kind = BackendKind::kCpu;
  bool bf16 = false, fp16 = false;    // neither: fp32
  std::optional<DType> weight_tiles;  // of weights that are not trained (ExecutorOptions::weight_tiles)
  // CUDA alone (CudaOptions in ops/backend.h).
  bool tf32 = false, gemm_timing = true, cuda_graphs = true;
  KernelUse cudnn_attention = KernelUse::kWherePossible, hopper_attention = KernelUse::kWherePossible;
  bool guard_memory = false;  // CPUs alone

  DType compute_dtype() const { return bf16 ? DType::kBF16 : fp16 ? DType::kF16 : DType::kF32; }
  Faults faults() const;
};

// Adds --bf16, --fp16 and --tf32. The help of the first two differs between training and other commands.
void add_precision_fields(FieldList& list, BackendSettings& settings, std::string bf16_help, std::string fp16_help);

// Adds them with the help of training.
void add_training_precision_fields(FieldList& list, BackendSettings& settings);

// Adds --backend and its options.
void add_backend_fields(FieldList& list, BackendSettings& settings);

}  // namespace teratron
