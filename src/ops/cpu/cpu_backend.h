// The tuned back end for CPUs: fp32 arithmetic on fp32, bf16 or fp16 storage, vectors through Highway, threads through
// base/threads.h. Each operation lives in a file of its own name. Every output element is summed in an order that
// depends on the shapes alone, so results are the same bits whatever the number of threads and their timing.
#pragma once

#include <memory>

#include "ops/backend.h"
#include "ops/guarded_memory.h"

namespace teratron {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options);

  std::string_view name() const override { return "cpu"; }
  DType compute_dtype() const override { return compute_dtype_; }
  // Blocks of a huge page or more are aligned to it and ask the system for huge pages.
  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;

 protected:
  void do_upload(const TensorRef& to, const void* from) override;
  void do_download(void* to, const TensorRef& from) override;
  void do_copy(const TensorRef& to, const TensorRef& from) override;
  void do_fill(const TensorRef& view, double value) override;
  void do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index, double stddev,
                      std::int64_t row_stride) override;
  void do_add(const TensorRef& to, const TensorRef& from) override;
  void do_linear_forward(const LinearForward& args) override;
  void do_linear_input_gradient(const LinearInputGradient& args) override;
  void do_linear_weight_gradient(const LinearWeightGradient& args) override;
  void do_layer_norm_forward(const LayerNormForward& args) override;
  void do_layer_norm_apply(const LayerNormForward& args) override;
  void do_layer_norm_backward(const LayerNormBackward& args) override;
  void do_residual_add(const ResidualAdd& args) override;
  void do_residual_add_layer_norm(const ResidualAdd& add, const LayerNormForward& norm) override;
  void do_dropout_backward(const TensorRef& dbranch, const TensorRef& dsum, const Dropout& dropout) override;
  void do_attention_forward(const AttentionForward& args) override;
  void do_attention_backward(const AttentionBackward& args) override;
  void do_embedding_forward(const EmbeddingForward& args) override;
  void do_embedding_backward(const EmbeddingBackward& args) override;
  void do_cross_entropy_partials(const CrossEntropyPartials& args) override;
  void do_cross_entropy_rescale(const TensorRef& sum, const TensorRef& own_max, const TensorRef& max) override;
  void do_cross_entropy_loss(const TensorRef& loss, const TensorRef& max, const TensorRef& sum,
                             const TensorRef& target_logit) override;
  void do_cross_entropy_backward(const CrossEntropyBackward& args) override;
  void do_adamw(const AdamW& args) override;
  double do_sum_of_squares(const TensorRef& view) override;
  void open_memory() override;
  void close_memory() noexcept override;

 private:
  DType compute_dtype_;
  std::unique_ptr<GuardedMemory> guarded_;  // null unless CpuOptions::guard_memory
};

}  // namespace teratron
