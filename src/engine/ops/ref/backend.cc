// The reference back end: one scalar loop nest per operation, in double arithmetic, rounded once to the type stored.
// Slow on purpose. Each operation is defined by the function of its name in the header of its family.
#include "ops/backend.h"

#include <cstring>
#include <new>

#include "ops/ref/activation.h"
#include "ops/ref/attention.h"
#include "ops/ref/cross_entropy.h"
#include "ops/ref/dropout.h"
#include "ops/ref/embedding.h"
#include "ops/ref/linear.h"
#include "ops/ref/memory.h"
#include "ops/ref/norm.h"
#include "ops/ref/optimizer.h"
#include "ops/ref/rotary.h"

namespace teratron {
namespace {

constexpr std::align_val_t kAlignment{64};

template <class C>
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
  void do_fill(const TensorRef& view, double value) override { reference::fill(view, value); }
  void do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index, double stddev,
                      std::int64_t row_stride) override {
    visit_floating(view.dtype, [&]<class T>(ElementType<T>) {
      reference::fill_normal<T>(view, random, first_index, stddev, row_stride);
    });
  }
  void do_add(const TensorRef& to, const TensorRef& from) override {
    visit_floating(to.dtype, [&]<class T>(ElementType<T>) { reference::add<T>(to, from); });
  }
  void do_scale_add(const TensorRef& to, double keep, const TensorRef& from, double scale) override {
    visit_floating(to.dtype, [&]<class To>(ElementType<To>) {
      visit_floating(from.dtype,
                     [&]<class From>(ElementType<From>) { reference::scale_add<To, From>(to, keep, from, scale); });
    });
  }
  void do_split_floats(const TensorRef& nearest, const TensorRef& remainder, const TensorRef& from) override {
    reference::split_floats(nearest, remainder, from);
  }
  void do_join_floats(const TensorRef& to, const TensorRef& nearest, const TensorRef& remainder) override {
    reference::join_floats(to, nearest, remainder);
  }
  double do_sum_of_squares(std::span<const TensorRef> views) override {
    double sum = 0;
    for (const TensorRef& view : views) {
      sum += visit_floating(view.dtype, [&]<class T>(ElementType<T>) { return reference::sum_of_squares<T>(view); });
    }
    return sum;
  }
  void do_tally(const TensorRef& to, const TensorRef& from) override {
    visit_floating(from.dtype,
                   [&]<class T>(ElementType<T>) { reference::tally<T>(*static_cast<Tally*>(to.data), from); });
  }
  // All others: do_linear_forward(args) calls reference::linear_forward<C>(args), and so on.
#define TERATRON_COMPUTE(operation, Arguments) \
  void do_##operation(const Arguments& args) override { reference::operation<C>(args); }
  TERATRON_OPERATIONS(TERATRON_COMPUTE)
#undef TERATRON_COMPUTE

 private:
  DType compute_dtype_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(DType compute_dtype) {
  return visit_floating(compute_dtype, [&]<class C>(ElementType<C>) -> std::unique_ptr<Backend> {
    return std::make_unique<ReferenceBackend<C>>(compute_dtype);
  });
}

}  // namespace teratron
