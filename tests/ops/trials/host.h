// Moving values between the host's doubles and a back end's memory.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "ops/backend.h"

namespace teratron::testing {

using Values = std::vector<double>;

// Rounded to the view's dtype (floating or i32). The view is contiguous.
void upload_values(Backend& backend, const TensorRef& view, const Values& values);
Values download_values(Backend& backend, const TensorRef& view);  // any strides

// To what a floating dtype holds.
Values rounded(Values values, DType dtype);

// A new tensor of the compute type, another one, or i32, with these values.
Tensor make_tensor(Backend& backend, const Shape& shape, const Values& values);
Tensor make_tensor(Backend& backend, DType dtype, const Shape& shape, const Values& values);
Tensor make_ids(Backend& backend, const Shape& shape, const Values& values);
// Every element NaN, so that one that is never written shows.
Tensor make_poisoned(Backend& backend, const Shape& shape);
Tensor make_poisoned(Backend& backend, DType dtype, const Shape& shape);

// Random numbers for a test: values that fp32 holds exactly, so that all back ends see the same input.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(engine_); }
  bool coin() { return below(2) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<std::int64_t>(choices.size())));
  }
  Values normals(const Shape& shape, double mean = 0, double stddev = 1);
  Values integers(const Shape& shape, std::int64_t begin, std::int64_t end);

 private:
  std::mt19937_64 engine_;
};

}  // namespace teratron::testing
