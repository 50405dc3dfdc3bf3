#include "checkpoint/tensor_differences.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string_view>

#include "base/error.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace teratron {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const TensorSource& source, std::size_t tensor) {
  Bytes bytes;
  source.pass_on(tensor, appending_sink(bytes));
  return bytes;
}

// Norm of values whose squares may be beyond the range of doubles.
class Norm {
 public:
  void add(double value) {
    const double size = std::abs(value);
    if (size == 0) return;
    if (size > largest_) {
      const double shrunk = largest_ / size;
      squares_ = 1 + squares_ * shrunk * shrunk;
      largest_ = size;
    } else {
      const double share = size == largest_ ? 1 : size / largest_;  // infinities as well
      squares_ += share * share;
    }
  }
  bool is_zero() const { return largest_ == 0; }
  double over(const Norm& other) const { return largest_ / other.largest_ * std::sqrt(squares_ / other.squares_); }

 private:
  double largest_ = 0, squares_ = 0;  // of the values over the largest
};

// Running comparison of one tensor.
class Comparison {
 public:
  explicit Comparison(TensorDifference& found) : found_(found) {}

  void add(double a, double b) {
    const std::int64_t index = found_.values++;
    if (std::isfinite(a)) of_a_.add(a);
    if (a == b || (std::isnan(a) && std::isnan(b))) return;
    add_difference(index);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      not_finite_ = true;
      return;
    }
    found_.largest = std::max(found_.largest, std::abs(a - b));
    of_difference_.add(a - b);
  }

  void add_unequal_bytes(bool equal) {
    const std::int64_t index = found_.values++;
    if (!equal) add_difference(index);
    not_finite_ |= !equal;
  }

  bool has_parted(double tolerance) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (!of_difference_.is_zero()) found_.relative = of_a_.is_zero() ? infinity : of_difference_.over(of_a_);
    return found_.differing > 0 && (not_finite_ || tolerance == 0 || !(found_.relative <= tolerance));
  }

 private:
  void add_difference(std::int64_t index) {
    if (found_.differing++ == 0) found_.first = index;
  }

  TensorDifference& found_;
  Norm of_a_, of_difference_;
  bool not_finite_ = false;  // some value differs that no norm counts
};

// Compares floating values with the next piece of `b`, whose values are whole.
void compare_floats(std::span<const std::byte> a, DType a_dtype, std::span<const std::byte> b, DType b_dtype,
                    Comparison& comparison) {
  const std::size_t count = b.size() / static_cast<std::size_t>(size_of(b_dtype));
  std::vector<double> of_a(count), of_b(count);
  convert_floats(std::as_writable_bytes(std::span(of_a)), DType::kF64, a, a_dtype);
  convert_floats(std::as_writable_bytes(std::span(of_b)), DType::kF64, b, b_dtype);
  for (std::size_t i = 0; i < count; ++i) comparison.add(of_a[i], of_b[i]);
}

void compare_elements(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t size,
                      Comparison& comparison) {
  for (std::size_t at = 0; at + size <= b.size(); at += size) {
    comparison.add_unequal_bytes(std::memcmp(a.data() + at, b.data() + at, size) == 0);
  }
}

// nullopt: equal, or within the tolerance.
std::optional<TensorDifference> compare_tensor(const TensorSource& a, std::size_t in_a, const TensorSource& b,
                                               std::size_t in_b, double tolerance) {
  const SourceTensor &of_a = a.tensors()[in_a], &of_b = b.tensors()[in_b];
  if (!of_a.checksum.empty() && of_a.checksum == of_b.checksum && of_a.dtype_name == of_b.dtype_name) return {};
  TensorDifference found{.name = of_a.name, .shape = of_a.shape};
  Comparison comparison(found);
  const bool floats = of_a.dtype && of_b.dtype && is_floating(*of_a.dtype) && is_floating(*of_b.dtype);
  const Bytes whole = bytes_of(a, in_a);
  std::span<const std::byte> rest = whole;
  b.pass_on(in_b, [&](std::span<const std::byte> piece) {
    const auto size_in_b = static_cast<std::size_t>(safetensors_element_size(of_b.dtype_name));
    const auto size_in_a = static_cast<std::size_t>(safetensors_element_size(of_a.dtype_name));
    const std::size_t bytes = std::min(rest.size(), piece.size() / size_in_b * size_in_a);
    if (floats) {
      compare_floats(rest.first(bytes), *of_a.dtype, piece, *of_b.dtype, comparison);
    } else {
      compare_elements(rest.first(bytes), piece, size_in_b, comparison);
    }
    rest = rest.subspan(bytes);
  });
  if (!comparison.has_parted(tolerance)) return {};
  return found;
}

bool are_comparable(const SourceTensor& a, const SourceTensor& b) {
  const bool floats = a.dtype && b.dtype && is_floating(*a.dtype) && is_floating(*b.dtype);
  return a.shape == b.shape && (floats || a.dtype_name == b.dtype_name);
}

std::string text_of(const SourceTensor& tensor) {
  return fmt::format("{} [{}]", tensor.dtype_name, fmt::join(tensor.shape, ", "));
}

bool has_optimizer(const TensorSource& source) {
  return std::ranges::any_of(source.tensors(), &SourceTensor::is_of_optimizer);
}

}  // namespace

TensorComparison compare(const TensorSource& a, const TensorSource& b, double tolerance) {
  std::map<std::string_view, std::size_t> in_b;
  for (std::size_t i = 0; i < b.tensors().size(); ++i) in_b[b.tensors()[i].name] = i;
  const bool with_optimizer = has_optimizer(a) && has_optimizer(b);
  const auto counts = [&](const SourceTensor& tensor) { return with_optimizer || !tensor.is_of_optimizer; };
  TensorComparison comparison;
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    const SourceTensor& tensor = a.tensors()[i];
    const auto there = in_b.extract(tensor.name);
    if (there.empty()) {
      if (counts(tensor)) comparison.only_in_a.push_back(tensor.name);
    } else if (const SourceTensor& other = b.tensors()[there.mapped()]; !are_comparable(tensor, other)) {
      comparison.other_shape.push_back(fmt::format("{}: {} and {}", tensor.name, text_of(tensor), text_of(other)));
    } else {
      ++comparison.compared;
      if (auto found = compare_tensor(a, i, b, there.mapped(), tolerance))
        comparison.parted.push_back(std::move(*found));
    }
  }
  for (const SourceTensor& tensor : b.tensors()) {
    if (in_b.contains(tensor.name) && counts(tensor)) comparison.only_in_b.push_back(tensor.name);
  }
  return comparison;
}

}  // namespace teratron
