#include "tensor/tensor.h"

#include <fmt/ranges.h>

#include <span>

namespace teratron {

Shape::Shape(std::initializer_list<std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  check(rank_ <= kMaxRank, "a shape has at most kMaxRank axes");
  std::size_t axis = 0;
  for (const std::int64_t dim : dims) {
    check(dim >= 0, "sizes are not negative");
    dims_[axis++] = dim;
  }
}

std::int64_t Shape::operator[](int axis) const {
  const int index = axis < 0 ? axis + rank_ : axis;
  check(index >= 0 && index < rank_, "axis within the shape");
  return dims_[static_cast<std::size_t>(index)];
}

std::int64_t& Shape::operator[](int axis) {
  const int index = axis < 0 ? axis + rank_ : axis;
  check(index >= 0 && index < rank_, "axis within the shape");
  return dims_[static_cast<std::size_t>(index)];
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= dims_[static_cast<std::size_t>(axis)];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(std::span(dims_.data(), static_cast<std::size_t>(rank_)), ", "));
}

TensorRef::TensorRef(void* memory, DType type, const Shape& dims) : data(memory), dtype(type), shape(dims) {
  std::int64_t step = 1;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = step;
    step *= dims[axis];
  }
}

bool TensorRef::is_contiguous() const {
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[static_cast<std::size_t>(axis)] != step) return false;
    step *= shape[axis];
  }
  return true;
}

TensorRef TensorRef::reshape(const Shape& dims) const {
  check(is_contiguous(), "reshape needs a contiguous view");
  check_equal(dims.elements(), elements(), "elements after reshape");
  return {data, dtype, dims};
}

TensorRef TensorRef::slice(int axis, std::int64_t begin, std::int64_t end) const {
  const int index = axis < 0 ? axis + shape.rank() : axis;
  check(begin >= 0 && begin <= end && end <= shape[index], "slice within the view");
  TensorRef view = *this;
  view.shape[index] = end - begin;
  view.data = static_cast<std::byte*>(data) + begin * strides[static_cast<std::size_t>(index)] * size_of(dtype);
  return view;
}

TensorRef TensorRef::select(int axis, std::int64_t index) const {
  const int dropped = axis < 0 ? axis + shape.rank() : axis;
  const TensorRef one = slice(dropped, index, index + 1);
  TensorRef view;
  view.data = one.data;
  view.dtype = dtype;
  Shape dims;
  switch (shape.rank() - 1) {
    case 0: break;
    case 1: dims = {0}; break;
    case 2: dims = {0, 0}; break;
    case 3: dims = {0, 0, 0}; break;
    default: dims = {0, 0, 0, 0}; break;
  }
  for (int from = 0, to = 0; from < shape.rank(); ++from) {
    if (from == dropped) continue;
    dims[to] = shape[from];
    view.strides[static_cast<std::size_t>(to++)] = strides[static_cast<std::size_t>(from)];
  }
  view.shape = dims;
  return view;
}

TensorRef TensorRef::flatten_rows() const {
  const std::int64_t columns = shape[-1];
  return reshape({columns == 0 ? 0 : elements() / columns, columns});
}

}  // namespace teratron
