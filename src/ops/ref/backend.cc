// The reference back end: one scalar loop nest per operation, in double arithmetic, rounded once to the compute type.
// Slow on purpose. Each operation's maths is in the header of its family, which is the place to read what it means.
#include "ops/backend.h"

#include <cstring>
#include <new>

#include "ops/ref/attention.h"
#include "ops/ref/cross_entropy.h"
#include "ops/ref/dropout.h"
#include "ops/ref/embedding.h"
#include "ops/ref/layer_norm.h"
#include "ops/ref/linear.h"
#include "ops/ref/memory.h"
#include "ops/ref/optimizer.h"

namespace teratron {
namespace {

constexpr std::align_val_t kAlignment{64};

template <class T>
class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(DType compute_dtype) : compute_dtype_(compute_dtype) {}

  std::string_view name() const override { return "reference"; }
  DType compute_dtype() const override { return compute_dtype_; }

  void* allocate(std::int64_t bytes) override {
    void* const memory = ::operator new(static_cast<std::size_t>(bytes), kAlignment, std::nothrow);
    if (memory == nullptr) throw_environment_error("cannot allocate {} bytes of memory", bytes);
    return memory;
  }
  void release(void* memory) noexcept override { ::operator delete(memory, kAlignment); }

 protected:
  void do_upload(const TensorRef& to, const void* from) override {
    std::memcpy(to.data, from, static_cast<std::size_t>(to.bytes()));
  }
  void do_download(void* to, const TensorRef& from) override {
    std::memcpy(to, from.data, static_cast<std::size_t>(from.bytes()));
  }
  void do_copy(const TensorRef& to, const TensorRef& from) override { reference::copy(to, from); }
  void do_fill(const TensorRef& view, double value) override { reference::fill<T>(view, value); }
  void do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index,
                      double stddev) override {
    reference::fill_normal<T>(view, random, first_index, stddev);
  }
  void do_add(const TensorRef& to, const TensorRef& from) override { reference::add<T>(to, from); }
  void do_linear_forward(const LinearForward& args) override { reference::linear_forward<T>(args); }
  void do_linear_input_gradient(const LinearInputGradient& args) override { reference::linear_input_gradient<T>(args); }
  void do_linear_weight_gradient(const LinearWeightGradient& args) override {
    reference::linear_weight_gradient<T>(args);
  }
  void do_layer_norm_forward(const LayerNormForward& args) override { reference::layer_norm_forward<T>(args); }
  void do_layer_norm_apply(const LayerNormForward& args) override { reference::layer_norm_apply<T>(args); }
  void do_layer_norm_backward(const LayerNormBackward& args) override { reference::layer_norm_backward<T>(args); }
  void do_residual_add(const ResidualAdd& args) override { reference::residual_add<T>(args); }
  void do_residual_add_layer_norm(const ResidualAdd& add, const LayerNormForward& norm) override {
    reference::residual_add<T>(add);
    reference::layer_norm_forward<T>(norm);
  }
  void do_dropout_backward(const TensorRef& dbranch, const TensorRef& dsum, const Dropout& dropout) override {
    reference::dropout_backward<T>(dbranch, dsum, dropout);
  }
  void do_attention_forward(const AttentionForward& args) override { reference::attention_forward<T>(args); }
  void do_attention_backward(const AttentionBackward& args) override { reference::attention_backward<T>(args); }
  void do_embedding_forward(const EmbeddingForward& args) override { reference::embedding_forward<T>(args); }
  void do_embedding_backward(const EmbeddingBackward& args) override { reference::embedding_backward<T>(args); }
  void do_cross_entropy_partials(const CrossEntropyPartials& args) override {
    reference::cross_entropy_partials<T>(args);
  }
  void do_cross_entropy_rescale(const TensorRef& sum, const TensorRef& own_max, const TensorRef& max) override {
    reference::cross_entropy_rescale<T>(sum, own_max, max);
  }
  void do_cross_entropy_loss(const TensorRef& loss, const TensorRef& max, const TensorRef& sum,
                             const TensorRef& target_logit) override {
    reference::cross_entropy_loss<T>(loss, max, sum, target_logit);
  }
  void do_cross_entropy_backward(const CrossEntropyBackward& args) override {
    reference::cross_entropy_backward<T>(args);
  }
  void do_adamw(const AdamW& args) override { reference::adamw<T>(args); }
  double do_sum_of_squares(const TensorRef& view) override { return reference::sum_of_squares<T>(view); }

 private:
  DType compute_dtype_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(DType compute_dtype) {
  switch (compute_dtype) {
    case DType::kF64: return std::make_unique<ReferenceBackend<double>>(compute_dtype);
    case DType::kF32: return std::make_unique<ReferenceBackend<float>>(compute_dtype);
    default: throw InternalError(fmt::format("the reference back end has no {} kernels", name_of(compute_dtype)));
  }
}

}  // namespace teratron
