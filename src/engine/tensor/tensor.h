// TensorRef: a view of device memory, passed by value. It never owns, never allocates and never dereferences:
// only back ends (ops/) and communicators (comm/) may touch what `data` points to.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/dtype.h"
#include "base/error.h"

namespace teratron {

constexpr int kMaxRank = 5;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const;  // negative axes count from the end
  std::int64_t& operator[](int axis);
  std::int64_t elements() const;  // 1 for rank 0
  bool operator==(const Shape& other) const = default;
  std::string to_string() const;  // "[2, 3]"

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

struct TensorRef {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::array<std::int64_t, kMaxRank> strides{};  // in elements

  TensorRef() = default;
  TensorRef(void* memory, DType type, const Shape& dims);  // contiguous, row-major

  explicit operator bool() const { return data != nullptr; }
  std::int64_t dim(int axis) const { return shape[axis]; }
  std::int64_t stride(int axis) const {
    return strides[static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis)];
  }
  std::int64_t elements() const { return shape.elements(); }
  std::int64_t bytes() const { return elements() * size_of(dtype); }
  bool is_contiguous() const;

  TensorRef reshape(const Shape& dims) const;  // contiguous views only; same number of elements
  // Elements [begin, end) of an axis; negative axes count from the end. InternalError: outside the view.
  TensorRef slice(int axis, std::int64_t begin, std::int64_t end) const;
  TensorRef select(int axis, std::int64_t index) const;  // slice() of one element, without the axis
  TensorRef flatten_rows() const;                        // [..., n] -> [rows, n]; contiguous views only

  // Typed pointer for kernels; the type must match the dtype's size.
  template <class T>
  T* as() const {
    check_equal(static_cast<std::int64_t>(sizeof(T)), size_of(dtype), "element size of the view");
    return static_cast<T*>(data);
  }
};

}  // namespace teratron

template <>
struct fmt::formatter<teratron::Shape> : fmt::formatter<std::string> {
  auto format(const teratron::Shape& shape, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(shape.to_string(), context);
  }
};
