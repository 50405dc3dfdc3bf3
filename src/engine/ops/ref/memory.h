// Operations on memory: copies, fills, sums, and fp32 values in halves.
#pragma once

#include <bit>
#include <cstring>

#include "ops/backend.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

inline void copy(const TensorRef& to, const TensorRef& from) {
  if (to.shape.rank() == 0 && to.dtype == from.dtype) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(size_of(to.dtype)));
    return;
  }
  if (to.shape.rank() == 0) {
    const auto value =
        visit_floating(from.dtype, [&]<class From>(ElementType<From>) { return double{*from.as<From>()}; });
    visit_floating(to.dtype, [&]<class To>(ElementType<To>) { *to.as<To>() = static_cast<To>(value); });
    return;
  }
  for (std::int64_t i = 0; i < to.dim(0); ++i) copy(to.select(0, i), from.select(0, i));
}

inline void fill(const TensorRef& view, double value) {
  if (value == 0) {  // of any dtype: all of them write zero as zero bytes
    std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
    return;
  }
  visit_floating(view.dtype, [&]<class T>(ElementType<T>) {
    T* const to = view.as<T>();
    for (std::int64_t e = 0; e < view.elements(); ++e) to[e] = static_cast<T>(value);
  });
}

template <class T>
void fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index, double stddev,
                 std::int64_t row_stride) {
  const Elements<T> to(view);
  for (std::int64_t r = 0; r < view.dim(0); ++r) {
    for (std::int64_t c = 0; c < view.dim(1); ++c) {
      const std::int64_t n = first_index + r * row_stride + c;
      const PhiloxCounter bits = random.bits(static_cast<std::uint64_t>(n / 2));
      to(r, c) = static_cast<T>(stddev * normal_from_bits(bits[0], bits[1])[static_cast<std::size_t>(n % 2)]);
    }
  }
}

template <class T>
void add(const TensorRef& to_view, const TensorRef& from_view) {
  const Elements<T> to(to_view), from(from_view);
  for (std::int64_t e = 0; e < to_view.elements(); ++e) to(e) = static_cast<T>(double{to(e)} + double{from(e)});
}

template <class To, class From>
void scale_add(const TensorRef& to_view, double keep, const TensorRef& from_view, double scale) {
  const Elements<To> to(to_view);
  const Elements<From> from(from_view);
  for (std::int64_t e = 0; e < to_view.elements(); ++e) {
    const double kept = keep == 0 ? 0 : keep * double{to(e)};
    to(e) = static_cast<To>(kept + scale * double{from(e)});
  }
}

inline void split_floats(const TensorRef& nearest, const TensorRef& remainder, const TensorRef& from) {
  for (std::int64_t e = 0; e < from.elements(); ++e) {
    const SplitFloat halves = split_float(std::bit_cast<std::uint32_t>(from.as<float>()[e]));
    nearest.as<Bf16>()[e] = halves.nearest;
    remainder.as<std::uint16_t>()[e] = halves.remainder;
  }
}

inline void join_floats(const TensorRef& to, const TensorRef& nearest, const TensorRef& remainder) {
  for (std::int64_t e = 0; e < to.elements(); ++e) {
    to.as<float>()[e] = std::bit_cast<float>(
        joined_bits({.nearest = nearest.as<Bf16>()[e], .remainder = remainder.as<std::uint16_t>()[e]}));
  }
}

}  // namespace teratron::reference
