#include "ops/trials/host.h"

#include <algorithm>
#include <limits>

namespace teratron::testing {
namespace {

template <class T>
void upload_as(Backend& backend, const TensorRef& view, const Values& values) {
  std::vector<T> converted(values.size());
  std::transform(values.begin(), values.end(), converted.begin(), [](double value) { return static_cast<T>(value); });
  backend.upload(view, converted.data());
}

template <class T>
Values download_as(Backend& backend, const TensorRef& view) {
  std::vector<T> raw(static_cast<std::size_t>(view.elements()));
  backend.download(raw.data(), view);
  return {raw.begin(), raw.end()};
}

}  // namespace

void upload_values(Backend& backend, const TensorRef& view, const Values& values) {
  check_equal(static_cast<std::int64_t>(values.size()), view.elements(), "values for the view");
  switch (view.dtype) {
    case DType::kF64: return upload_as<double>(backend, view, values);
    case DType::kF32: return upload_as<float>(backend, view, values);
    case DType::kBF16: return upload_as<Bf16>(backend, view, values);
    case DType::kF16: return upload_as<F16>(backend, view, values);
    case DType::kI32: return upload_as<std::int32_t>(backend, view, values);
    default: check(false, "a dtype that the tests use");
  }
}

Values download_values(Backend& backend, const TensorRef& view) {
  if (!view.is_contiguous()) {
    const Tensor packed(backend, view.dtype, view.shape);
    backend.copy(packed, view);
    return download_values(backend, packed);
  }
  switch (view.dtype) {
    case DType::kF64: return download_as<double>(backend, view);
    case DType::kF32: return download_as<float>(backend, view);
    case DType::kBF16: return download_as<Bf16>(backend, view);
    case DType::kF16: return download_as<F16>(backend, view);
    case DType::kI32: return download_as<std::int32_t>(backend, view);
    default: check(false, "a dtype that the tests use"); return {};
  }
}

Values rounded(Values values, DType dtype) {
  visit_floating(dtype, [&]<class T>(ElementType<T>) {
    for (double& value : values) value = static_cast<double>(static_cast<T>(value));
  });
  return values;
}

Tensor make_tensor(Backend& backend, const Shape& shape, const Values& values) {
  return make_tensor(backend, backend.compute_dtype(), shape, values);
}

Tensor make_tensor(Backend& backend, DType dtype, const Shape& shape, const Values& values) {
  Tensor tensor(backend, dtype, shape);
  upload_values(backend, tensor, values);
  return tensor;
}

Tensor make_ids(Backend& backend, const Shape& shape, const Values& values) {
  Tensor tensor(backend, DType::kI32, shape);
  upload_values(backend, tensor, values);
  return tensor;
}

Tensor make_poisoned(Backend& backend, const Shape& shape) {
  return make_poisoned(backend, backend.compute_dtype(), shape);
}

Tensor make_poisoned(Backend& backend, DType dtype, const Shape& shape) {
  const Values nan(static_cast<std::size_t>(shape.elements()), std::numeric_limits<double>::quiet_NaN());
  return make_tensor(backend, dtype, shape, nan);
}

Values Random::normals(const Shape& shape, double mean, double stddev) {
  std::normal_distribution<float> normal(static_cast<float>(mean), static_cast<float>(stddev));
  Values values(static_cast<std::size_t>(shape.elements()));
  std::generate(values.begin(), values.end(), [&] { return double{normal(engine_)}; });
  return values;
}

Values Random::integers(const Shape& shape, std::int64_t begin, std::int64_t end) {
  Values values(static_cast<std::size_t>(shape.elements()));
  std::generate(values.begin(), values.end(), [&] { return static_cast<double>(begin + below(end - begin)); });
  return values;
}

}  // namespace teratron::testing
