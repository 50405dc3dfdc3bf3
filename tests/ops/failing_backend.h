// A back end whose every operation fails, and that counts how often its memory was opened and closed.
#pragma once

#include "ops/backend.h"

namespace teratron::testing {

class FailingBackend : public Backend {
 public:
  int entered = 0, left = 0;

  std::string_view name() const override { return "failing"; }
  DType compute_dtype() const override { return DType::kF32; }
  void* allocate(std::int64_t) override { fail(); }
  void release(void*) noexcept override {}

 protected:
  void open_memory() override { ++entered; }
  void close_memory() noexcept override { ++left; }

  void do_upload(const TensorRef&, const void*) override { fail(); }
  void do_download(void*, const TensorRef&) override { fail(); }
  void do_copy(const TensorRef&, const TensorRef&) override { fail(); }
  void do_fill(const TensorRef&, double) override { fail(); }
  void do_fill_normal(const TensorRef&, const RandomStream&, std::int64_t, double, std::int64_t) override { fail(); }
  void do_add(const TensorRef&, const TensorRef&) override { fail(); }
  void do_linear_forward(const LinearForward&) override { fail(); }
  void do_linear_input_gradient(const LinearInputGradient&) override { fail(); }
  void do_linear_weight_gradient(const LinearWeightGradient&) override { fail(); }
  void do_layer_norm_forward(const LayerNormForward&) override { fail(); }
  void do_layer_norm_apply(const LayerNormForward&) override { fail(); }
  void do_layer_norm_backward(const LayerNormBackward&) override { fail(); }
  void do_residual_add(const ResidualAdd&) override { fail(); }
  void do_residual_add_layer_norm(const ResidualAdd&, const LayerNormForward&) override { fail(); }
  void do_dropout_backward(const TensorRef&, const TensorRef&, const Dropout&) override { fail(); }
  void do_attention_forward(const AttentionForward&) override { fail(); }
  void do_attention_backward(const AttentionBackward&) override { fail(); }
  void do_embedding_forward(const EmbeddingForward&) override { fail(); }
  void do_embedding_backward(const EmbeddingBackward&) override { fail(); }
  void do_cross_entropy_partials(const CrossEntropyPartials&) override { fail(); }
  void do_cross_entropy_rescale(const TensorRef&, const TensorRef&, const TensorRef&) override { fail(); }
  void do_cross_entropy_loss(const TensorRef&, const TensorRef&, const TensorRef&, const TensorRef&) override {
    fail();
  }
  void do_cross_entropy_backward(const CrossEntropyBackward&) override { fail(); }
  void do_adamw(const AdamW&) override { fail(); }
  double do_sum_of_squares(const TensorRef&) override { fail(); }

 private:
  [[noreturn]] static void fail() { throw EnvironmentError("this back end fails"); }
};

}  // namespace teratron::testing
