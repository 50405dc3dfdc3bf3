// Access to a view's elements by index, for the reference kernels.
#pragma once

#include <cstdint>

#include "base/float_types.h"
#include "tensor/tensor.h"

namespace teratron::reference {

// view(i, j, ...) through the view's strides. An absent view may be wrapped but not indexed.
template <class T>
class Elements {
 public:
  explicit Elements(const TensorRef& view) : data_(view ? view.as<T>() : nullptr), strides_(view.strides) {}

  template <class... Index>
  T& operator()(Index... index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += index * strides_[axis++]), ...);
    return data_[offset];
  }

 private:
  T* data_;
  std::array<std::int64_t, kMaxRank> strides_;
};

// to = value, or to += value.
template <class T>
void store(T& to, double value, bool accumulate) {
  to = static_cast<T>(accumulate ? double{to} + value : value);
}

}  // namespace teratron::reference
