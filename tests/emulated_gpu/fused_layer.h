// A linear layer on the emulated cuBLASLt, which says with which epilogues its products were computed.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "ops/backend.h"
#include "ops/trials/host.h"

namespace teratron::testing {

using Epilogues = std::map<cublasLtEpilogue_t, std::uint64_t>;  // products with each that was used

inline constexpr std::array kEpilogues = {CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_BIAS,
                                          CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                                          CUBLASLT_EPILOGUE_DGELU,    CUBLASLT_EPILOGUE_BGRADB};

template <class Work>
Epilogues epilogues_of(const Work& work) {
  Epilogues before, used;
  for (const auto epilogue : kEpilogues) before[epilogue] = emulated::products_with(epilogue);
  work();
  for (const auto epilogue : kEpilogues) {
    const std::uint64_t count = emulated::products_with(epilogue) - before[epilogue];
    if (count > 0) used[epilogue] = count;
  }
  return used;
}

inline Epilogues once(cublasLtEpilogue_t epilogue) { return {{epilogue, 1}}; }

inline std::unique_ptr<Backend> make_timed(DType dtype = DType::kBF16) {
  return make_cuda_backend({.compute_dtype = dtype, .gemm_timed_from = 0});
}

// A linear layer whose memory begins where any kernel may read it.
class FusedLayer {
 public:
  FusedLayer(Backend& gpu, std::int64_t rows, std::int64_t inputs, std::int64_t outputs, std::uint64_t seed = 1)
      : gpu_(gpu), rows_(rows), inputs_(inputs), outputs_(outputs) {
    for (const Tensor* tensor : {&x_, &y_, &weight_, &bias_, &vector_}) {
      gpu.fill_normal(tensor->ref(), {.seed = seed++}, 0, 1);
    }
  }
  Epilogues forward(Activation activation = Activation::kGeluTanh) {
    return epilogues_of([&] {
      gpu_.linear_forward({.y = y_.ref(),
                           .x = x_.ref(),
                           .weight = weight_.ref(),
                           .bias = bias_.ref(),
                           .activation = activation,
                           .activated = activation == Activation::kNone ? TensorRef() : activated_.ref()});
    });
  }
  // In place, as the layers of a transformer call it.
  Epilogues input_gradient() {
    return epilogues_of([&] {
      gpu_.linear_input_gradient({.dx = dx_.ref(),
                                  .dy = y_.ref(),
                                  .weight = weight_.ref(),
                                  .activation = Activation::kGeluTanh,
                                  .pre_activation = x_.ref(),
                                  .activated = x_.ref()});
    });
  }
  Epilogues weight_gradient(bool accumulate = false) {
    return epilogues_of([&] {
      gpu_.linear_weight_gradient(
          {.dweight = dweight_.ref(), .dy = y_.ref(), .x = x_.ref(), .dbias = vector_.ref(), .accumulate = accumulate});
    });
  }
  Values values(const TensorRef& view) { return download_values(gpu_, view); }
  Values y() { return values(y_.ref()); }
  Values activated() { return values(activated_.ref()); }
  Values dbias() { return values(vector_.ref()); }
  // Of dy by definition.
  Values sums_of_rows() {
    const Values dy = values(y_.ref());
    Values sums(static_cast<std::size_t>(outputs_));
    for (std::size_t i = 0; i < dy.size(); ++i) sums[i % sums.size()] += dy[i];
    return sums;
  }

 private:
  Backend& gpu_;
  std::int64_t rows_, inputs_, outputs_;
  const Tensor x_{gpu_, gpu_.compute_dtype(), {rows_, inputs_}}, y_{gpu_, gpu_.compute_dtype(), {rows_, outputs_}},
      weight_{gpu_, gpu_.compute_dtype(), {outputs_, inputs_}}, bias_{gpu_, gpu_.compute_dtype(), {outputs_}},
      activated_{gpu_, gpu_.compute_dtype(), {rows_, outputs_}}, dx_{gpu_, gpu_.compute_dtype(), {rows_, inputs_}},
      dweight_{gpu_, DType::kF32, {outputs_, inputs_}}, vector_{gpu_, DType::kF32, {outputs_}};
};

}  // namespace teratron::testing
