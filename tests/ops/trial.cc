#include "ops/trial.h"

#include <cmath>
#include <cstring>
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

Allotment allot(const Argument& argument, Backend& backend, std::int64_t offset) {
  const DType dtype = argument.is_ids ? DType::kI32 : backend.compute_dtype();
  Allotment allotment{.memory = Tensor(backend, dtype, {offset + argument.shape.elements() + kBorder}),
                      .view = {},
                      .bytes_before = static_cast<std::size_t>(offset * size_of(dtype)),
                      .bytes_of_view = static_cast<std::size_t>(argument.shape.elements() * size_of(dtype))};
  const TensorRef whole = allotment.memory;
  const std::vector<std::byte> poison(static_cast<std::size_t>(whole.bytes()), std::byte{0xFF});
  backend.upload(whole, poison.data());
  allotment.view = whole.slice(0, offset, offset + argument.shape.elements()).reshape(argument.shape);
  if (argument.role != Role::kOutput) upload_values(backend, allotment.view, argument.values);
  return allotment;
}

// To what fp32 holds, so that every back end is given the same numbers.
Values rounded_to_float(Values values) {
  for (double& value : values) value = static_cast<float>(value);
  return values;
}

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

TensorRef Views::operator[](const std::string& name) const {
  const auto found = views_.find(name);
  return found == views_.end() ? TensorRef{} : found->second;
}

Trial& Trial::input(std::string name, const Shape& shape, Values values) {
  arguments.push_back({std::move(name), shape, Role::kInput, rounded_to_float(std::move(values)), false, {}});
  return *this;
}

Trial& Trial::ids(std::string name, const Shape& shape, Values values) {
  arguments.push_back({std::move(name), shape, Role::kInput, std::move(values), true, {}});
  return *this;
}

Trial& Trial::output(std::string name, const Shape& shape, Tolerance tolerance) {
  arguments.push_back({std::move(name), shape, Role::kOutput, {}, false, tolerance});
  return *this;
}

Trial& Trial::in_out(std::string name, const Shape& shape, Values values, Tolerance tolerance) {
  arguments.push_back({std::move(name), shape, Role::kInOut, rounded_to_float(std::move(values)), false, tolerance});
  return *this;
}

Outcome execute(const Trial& trial, Backend& backend, std::int64_t offset) {
  std::vector<Allotment> allotments;
  Views views;
  for (const Argument& argument : trial.arguments) {
    allotments.push_back(allot(argument, backend, offset));
    views.set(argument.name, allotments.back().view);
  }
  trial.run(backend, views);

  Outcome outcome;
  for (std::size_t i = 0; i < allotments.size(); ++i) {
    const auto& [name, shape, role, values, is_ids, tolerance] = trial.arguments[i];
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
