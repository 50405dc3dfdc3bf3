// Which back end computes and in which precision: the settings of every command that runs a model, and their flags.
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/faults.h"
#include "options/fields.h"

namespace teratron {

enum class BackendKind { kCpu, kReference, kCuda };

struct BackendSettings {
  BackendKind kind = BackendKind::kCpu;
  bool bf16 = false, fp16 = false;  // neither: fp32
  bool tf32 = false;                // of fp32, on GPUs (ops/backend.h: CudaOptions)
  bool gemm_timing = true;          // on GPUs, likewise
  bool cuda_graphs = true;          // on GPUs, likewise
  bool cudnn_attention = false;     // on GPUs, likewise
  bool guard_memory = false;        // on CPUs

  DType compute_dtype() const { return bf16 ? DType::kBF16 : fp16 ? DType::kF16 : DType::kF32; }
  Faults faults() const;
};

// --bf16, --fp16 and --tf32; what the first two mean differs between training and the rest.
void add_precision_fields(FieldList& list, BackendSettings& settings, std::string bf16_help, std::string fp16_help);

// With what they mean in training.
void add_training_precision_fields(FieldList& list, BackendSettings& settings);

// --backend and the options of one.
void add_backend_fields(FieldList& list, BackendSettings& settings);

}  // namespace teratron
