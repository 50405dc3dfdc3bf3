// Copies between views of any rank, order of axes, gaps and alignment, of every pair of types, against plain loops.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/trials.h"
#include "ops/back_ends.h"

namespace teratron::testing {
namespace {

constexpr std::array kTypes = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16,
                               DType::kI64, DType::kI32, DType::kU16,  DType::kU8};

template <class Visit>
auto visit_any(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kI64: return visit(ElementType<std::int64_t>());
    case DType::kI32: return visit(ElementType<std::int32_t>());
    case DType::kU16: return visit(ElementType<std::uint16_t>());
    case DType::kU8: return visit(ElementType<std::uint8_t>());
    default: return visit_floating(dtype, visit);
  }
}

// A view in memory of its own: its axes lie in any order, with gaps or without, at some offset.
struct Placed {
  Tensor memory;
  TensorRef view;
};

// Axes in the order of memory, the outermost first.
std::vector<int> some_order(Random& random, int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (random.below(3) == 0) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
  }
  return order;
}

Placed place(Backend& backend, Random& random, DType dtype, const Shape& shape) {
  const std::int64_t vector = 16 / size_of(dtype);
  const bool aligned = random.coin();
  TensorRef view(nullptr, dtype, shape);
  std::int64_t step = 1;
  const std::vector<int> order = some_order(random, shape.rank());
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    view.strides[static_cast<std::size_t>(*axis)] = step;
    const std::int64_t gap = random.below(3) > 0 ? 0 : aligned && axis == order.rbegin() ? vector : 1 + random.below(2);
    step *= shape[*axis] + gap;
  }
  const std::int64_t offset = aligned ? vector * random.below(3) : random.below(20);
  Tensor memory(backend, dtype, {offset + step + 3});
  view.data = static_cast<std::byte*>(memory.ref().data) + offset * size_of(dtype);
  return {std::move(memory), view};
}

// Where element number i of a view lies in its memory.
std::size_t place_of(const Placed& placed, std::int64_t i) {
  const auto* const begin = static_cast<const std::byte*>(placed.memory.ref().data);
  std::int64_t place = (static_cast<const std::byte*>(placed.view.data) - begin) / size_of(placed.view.dtype);
  for (int axis = placed.view.shape.rank() - 1; axis >= 0; --axis) {
    place += i % placed.view.dim(axis) * placed.view.stride(axis);
    i /= placed.view.dim(axis);
  }
  return static_cast<std::size_t>(place);
}

// The whole memory, small integers that every type holds.
std::vector<double> read(Backend& backend, const TensorRef& memory) {
  return visit_any(memory.dtype, [&]<class T>(ElementType<T>) {
    std::vector<T> raw(static_cast<std::size_t>(memory.elements()));
    backend.download(raw.data(), memory);
    return std::vector<double>(raw.begin(), raw.end());
  });
}

void write(Backend& backend, const TensorRef& memory, const std::vector<double>& values) {
  visit_any(memory.dtype, [&]<class T>(ElementType<T>) {
    std::vector<T> raw;
    for (const double value : values) raw.push_back(static_cast<T>(value));
    backend.upload(memory, raw.data());
  });
}

Shape some_shape(Random& random) {
  const std::array shapes = {Shape{}, Shape{1}, Shape{1, 1}, Shape{1, 1, 1}, Shape{1, 1, 1, 1}, Shape{1, 1, 1, 1, 1}};
  Shape shape = shapes[static_cast<std::size_t>(random.below(6))];
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto size = random.one_of<std::int64_t>({1, 2, 3, 4, 7, 8, 16, 33, 64, 300, 5000});
    shape[axis] = std::max<std::int64_t>(1, std::min(size, 12000 / shape.elements()));
  }
  return shape;
}

class CopyViews : public ::testing::TestWithParam<BackEnd> {
 protected:
  void expect_copied(Random& random, DType to_type, DType from_type, const Shape& shape) {
    const Placed to = place(*backend_, random, to_type, shape), from = place(*backend_, random, from_type, shape);
    const auto size = [](const Placed& placed) { return static_cast<std::size_t>(placed.memory.ref().elements()); };
    std::vector<double> source(size(from)), expected(size(to), 255);
    for (double& value : source) value = static_cast<double>(random.below(250));
    write(*backend_, from.memory.ref(), source);
    write(*backend_, to.memory.ref(), expected);
    backend_->copy(to.view, from.view);
    for (std::int64_t i = 0; i < shape.elements(); ++i) expected[place_of(to, i)] = source[place_of(from, i)];
    const std::vector<double> actual = read(*backend_, to.memory.ref());
    const auto at = std::ranges::mismatch(actual, expected).in1 - actual.begin();
    EXPECT_EQ(actual, expected) << fmt::format("{} to {} {}, strides {} and {}, first at {}", name_of(from_type),
                                               name_of(to_type), shape, fmt::join(from.view.strides, ","),
                                               fmt::join(to.view.strides, ","), at);
  }
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(CopyViews, TakeEveryElementToItsPlaceAndTouchNothingElse) {
  Random random(3);
  for (int i = 0; i < trials(400) && !HasFailure(); ++i) {
    const DType to = kTypes[static_cast<std::size_t>(random.below(kTypes.size()))];
    const DType from = is_floating(to) ? kTypes[static_cast<std::size_t>(random.below(4))] : to;
    expect_copied(random, to, from, some_shape(random));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, CopyViews, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
