#include "ops/cuda/copy/copy_plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace teratron::cuda {
namespace {

void swap_axes(TensorRef& view, int a, int b) {
  std::swap(view.shape[a], view.shape[b]);
  std::swap(view.strides[static_cast<std::size_t>(a)], view.strides[static_cast<std::size_t>(b)]);
}

void drop_axis(CopyViews& views, int axis) {
  views.to = views.to.select(axis, 0);
  views.from = views.from.select(axis, 0);
}

// Whether steps along axis b are longer than along axis a.
bool is_longer(const CopyViews& views, int a, int b) {
  const auto steps = [&](int axis) {
    return std::pair(std::abs(views.to.stride(axis)), std::abs(views.from.stride(axis)));
  };
  return steps(b) > steps(a);
}

bool lie_in_one_piece(const TensorRef& view, int axis) {
  return view.stride(axis) == view.dim(axis + 1) * view.stride(axis + 1);
}

}  // namespace

// With l the least for which 2^l >= value, floor(number (2^32 + factor) / 2^(32 + l)) is the quotient, where factor =
// floor(2^32 (2^l - value) / value) + 1 (Granlund and Montgomery, Division by Invariant Integers using Multiplication).
Divisor::Divisor(std::int64_t value) : value_(static_cast<std::uint32_t>(value)) {
  check(value >= 1 && value <= 0x7fffffff, "a divisor of 31 bits");
  shift_ = static_cast<std::uint32_t>(std::bit_width(value_ - 1));
  factor_ = static_cast<std::uint32_t>((std::uint64_t{(1U << shift_) - value_} << 32) / value_ + 1);
}

CopyViews collapsed(CopyViews views) {
  for (int axis = views.to.shape.rank() - 1; axis >= 0; --axis) {
    if (views.to.dim(axis) == 1) drop_axis(views, axis);
  }
  const int rank = views.to.shape.rank();
  for (int end = 1; end < rank; ++end) {
    for (int axis = end; axis > 0 && is_longer(views, axis - 1, axis); --axis) {
      swap_axes(views.to, axis - 1, axis);
      swap_axes(views.from, axis - 1, axis);
    }
  }
  for (int axis = rank - 2; axis >= 0; --axis) {
    if (!lie_in_one_piece(views.to, axis) || !lie_in_one_piece(views.from, axis)) continue;
    for (TensorRef* const view : {&views.to, &views.from}) view->shape[axis + 1] *= view->shape[axis];
    drop_axis(views, axis);
  }
  return views;
}

std::vector<CopyViews> parts_of(const CopyViews& views, std::int64_t most) {
  if (views.to.elements() <= most) return {views};
  constexpr std::int64_t kAligned = 64;  // elements, as far as there are more: the second part takes vectors as well
  const std::int64_t size = views.to.dim(0), half = size / 2 < kAligned ? size / 2 : size / 2 / kAligned * kAligned;
  std::vector<CopyViews> parts;
  for (const auto& [begin, end] : {std::pair(std::int64_t{0}, half), std::pair(half, size)}) {
    const CopyViews part = {views.to.slice(0, begin, end), views.from.slice(0, begin, end)};
    for (const CopyViews& small : parts_of(end - begin == 1 ? collapsed(part) : part, most)) parts.push_back(small);
  }
  return parts;
}

bool takes_chunks(const CopyViews& views, std::int64_t elements_of_chunk) {
  constexpr std::int64_t kBytes = 16;
  const int last = views.to.shape.rank() - 1;
  if (last < 0 || views.to.dim(last) % elements_of_chunk != 0) return false;
  for (const TensorRef* const view : {&views.to, &views.from}) {
    bool aligned = view->stride(last) == 1 && reinterpret_cast<std::uintptr_t>(view->data) % kBytes == 0;
    for (int axis = 0; axis < last; ++axis) {
      aligned = aligned && view->stride(axis) * size_of(view->dtype) % kBytes == 0;
    }
    if (!aligned) return false;
  }
  return true;
}

CopyPlan::CopyPlan(const CopyViews& views, std::int64_t elements_of_chunk) {
  const int last = views.to.shape.rank() - 1;
  to_step = last < 0 || elements_of_chunk > 1 ? elements_of_chunk : views.to.stride(last);
  from_step = last < 0 || elements_of_chunk > 1 ? elements_of_chunk : views.from.stride(last);
  if (last >= 0) row_chunks = views.to.dim(last) / elements_of_chunk;
  // At least a warp, as far as there are chunks, so that its lanes read neighbours.
  const std::int64_t wanted =
      std::clamp<std::int64_t>((row_chunks + kChunks - 1) / kChunks, std::min<std::int64_t>(row_chunks, 32), kThreads);
  lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint32_t>(wanted)));
  lane_bits = std::countr_zero(static_cast<std::uint32_t>(lanes));
  add_axis((row_chunks + piece_chunks() - 1) / piece_chunks(), piece_chunks() * to_step, piece_chunks() * from_step);
  for (int axis = last - 1; axis >= 0; --axis)
    add_axis(views.to.dim(axis), views.to.stride(axis), views.from.stride(axis));
}

void CopyPlan::add_axis(std::int64_t size, std::int64_t to_stride, std::int64_t from_stride) {
  sizes[axes] = Divisor(size);
  to_strides[axes] = to_stride;
  from_strides[axes] = from_stride;
  pieces *= sizes[axes].value();
  ++axes;
}

}  // namespace teratron::cuda
