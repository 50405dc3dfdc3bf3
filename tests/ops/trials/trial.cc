#include "ops/trials/trial.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

namespace teratron::testing {
namespace {

constexpr std::int64_t kBorder = 40;  // elements after the view; more than any vector register holds

// An argument's memory: 0xFF bytes (NaN, or -1 for ids) around and, for outputs, inside the view.
struct Allotment {
  Tensor memory;
  TensorRef view;
  std::size_t bytes_before, bytes_of_view;
};

Allotment allot(const Argument& argument, Backend& backend, std::int64_t offset, DType input_dtype) {
  const DType dtype = argument.dtype(backend.compute_dtype());
  Allotment allotment{.memory = Tensor(backend, dtype, {offset + argument.shape.elements() + kBorder}),
                      .view = {},
                      .bytes_before = static_cast<std::size_t>(offset * size_of(dtype)),
                      .bytes_of_view = static_cast<std::size_t>(argument.shape.elements() * size_of(dtype))};
  const TensorRef whole = allotment.memory;
  const std::vector<std::byte> poison(static_cast<std::size_t>(whole.bytes()), std::byte{0xFF});
  backend.upload(whole, poison.data());
  allotment.view = whole.slice(0, offset, offset + argument.shape.elements()).reshape(argument.shape);
  if (argument.role == Role::kOutput) return allotment;
  const bool is_ids = argument.precision == Precision::kIds;
  upload_values(backend, allotment.view,
                is_ids ? argument.values : rounded(argument.values, argument.dtype(input_dtype)));
  return allotment;
}

std::span<std::byte> memory_of(const Allotment& allotment) {
  const TensorRef& whole = allotment.memory;
  return {static_cast<std::byte*>(whole.data), static_cast<std::size_t>(whole.bytes())};
}

// In a build with the address sanitizer, reads and writes of a border are reported while this lives.
class ClosedBorders {
 public:
  explicit ClosedBorders(const std::vector<Allotment>& allotments) : allotments_(allotments) {
    for (const Allotment& allotment : allotments_) {
      const std::span<std::byte> before = memory_of(allotment).first(allotment.bytes_before);
      const std::span<std::byte> after = memory_of(allotment).subspan(before.size() + allotment.bytes_of_view);
      ASAN_POISON_MEMORY_REGION(before.data(), before.size());
      ASAN_POISON_MEMORY_REGION(after.data(), after.size());
    }
  }
  ClosedBorders(const ClosedBorders&) = delete;
  ClosedBorders& operator=(const ClosedBorders&) = delete;
  ~ClosedBorders() {
    for (const Allotment& allotment : allotments_) {
      ASAN_UNPOISON_MEMORY_REGION(memory_of(allotment).data(), memory_of(allotment).size());
    }
  }

 private:
  const std::vector<Allotment>& allotments_;
};

bool is_poison(const std::byte* begin, const std::byte* end) {
  for (; begin != end; ++begin) {
    if (*begin != std::byte{0xFF}) return false;
  }
  return true;
}

}  // namespace

Tolerance sum_tolerance(std::int64_t terms, double steps, double floor) {
  return {kUnitRoundoff * (steps + 4 * std::sqrt(static_cast<double>(terms))), floor};
}

StorageRounding rounding_of(DType storage) {
  if (storage == DType::kBF16) return {0x1p-8, 0x1p-134};
  if (storage == DType::kF16) return {0x1p-11, 0x1p-25};
  return {};
}

double allowed_error(const Tolerance& tolerance, double expected, double rms, DType stored, DType compute,
                     bool tensor_cores) {
  const double carried = tolerance.carried * rounding_of(compute).relative;
  const double in_products = tensor_cores ? tolerance.tensor_core_terms / 8 * 2 * kUnitRoundoff +
                                                tolerance.approximations * 0x1p-11 +
                                                tolerance.rounded_products * rounding_of(compute).relative
                                          : 0;
  const double arithmetic = (tolerance.relative + carried + in_products) * (rms + tolerance.floor);
  if (arithmetic == 0) return 0;
  const StorageRounding rounding = rounding_of(stored);
  return arithmetic + std::max(rounding.absolute, rounding.relative * (std::abs(expected) + arithmetic));
}

TensorRef Views::operator[](const std::string& name) const {
  const auto found = views_.find(name);
  return found == views_.end() ? TensorRef{} : found->second;
}

DType Argument::dtype(DType compute) const {
  switch (precision) {
    case Precision::kCompute: return compute;
    case Precision::kAccumulation: return accumulation_dtype_of(compute);
    case Precision::kDouble: return DType::kF64;
    case Precision::kBF16: return DType::kBF16;
    case Precision::kIds: break;
  }
  return DType::kI32;
}

Trial& Trial::input(std::string name, const Shape& shape, Values values, Precision precision) {
  arguments.push_back({std::move(name), shape, Role::kInput, std::move(values), precision, {}});
  return *this;
}

Trial& Trial::ids(std::string name, const Shape& shape, Values values) {
  arguments.push_back({std::move(name), shape, Role::kInput, std::move(values), Precision::kIds, {}});
  return *this;
}

Trial& Trial::output(std::string name, const Shape& shape, Tolerance tolerance, Precision precision) {
  arguments.push_back({std::move(name), shape, Role::kOutput, {}, precision, tolerance});
  return *this;
}

Trial& Trial::in_out(std::string name, const Shape& shape, Values values, Tolerance tolerance, Precision precision) {
  arguments.push_back({std::move(name), shape, Role::kInOut, std::move(values), precision, tolerance});
  return *this;
}

Outcome execute(const Trial& trial, Backend& backend, std::int64_t offset, DType input_dtype) {
  std::vector<Allotment> allotments;
  Views views;
  for (const Argument& argument : trial.arguments) {
    allotments.push_back(allot(argument, backend, offset, input_dtype));
    views.set(argument.name, allotments.back().view);
  }
  {
    const ClosedBorders closed(allotments);
    trial.run(backend, views);
  }

  Outcome outcome;
  for (std::size_t i = 0; i < allotments.size(); ++i) {
    const std::string& name = trial.arguments[i].name;
    const Allotment& allotment = allotments[i];
    std::vector<std::byte> bytes(static_cast<std::size_t>(allotment.memory.ref().bytes()));
    backend.download(bytes.data(), allotment.memory);
    const std::byte* const view = bytes.data() + allotment.bytes_before;
    if (!is_poison(bytes.data(), view) || !is_poison(view + allotment.bytes_of_view, bytes.data() + bytes.size())) {
      outcome.damaged_borders.push_back(name);
    }
    outcome.values[name] = download_values(backend, allotment.view);
    outcome.memory[name] = std::move(bytes);
  }
  return outcome;
}

}  // namespace teratron::testing
