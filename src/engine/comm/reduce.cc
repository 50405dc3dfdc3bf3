#include "comm/reduce.h"

#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/host/threads.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Types of a dtype in memory (Element) and in sums (Vector).
template <class T>
struct Plain {
  using Element = T;
  using Tag = hn::ScalableTag<T>;
  static HWY_INLINE hn::Vec<Tag> load(const T* from) { return hn::LoadU(Tag(), from); }
  static HWY_INLINE void store(hn::Vec<Tag> value, T* to) { hn::StoreU(value, Tag(), to); }
};

// The upper half of an fp32.
struct BFloat16 {
  using Element = std::uint16_t;
  using Tag = hn::ScalableTag<float>;
  using Half = hn::Rebind<std::uint16_t, Tag>;
  using Bits = hn::Rebind<std::uint32_t, Tag>;
  static HWY_INLINE hn::Vec<Tag> load(const std::uint16_t* from) {
    return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), hn::LoadU(Half(), from))));
  }
  // To nearest even; NaN stays NaN (base/dtype.h).
  static HWY_INLINE void store(hn::Vec<Tag> value, std::uint16_t* to) {
    const auto bits = hn::BitCast(Bits(), value);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(Bits(), 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(Bits(), 0x7fff))));
    const auto is_nan = hn::RebindMask(Bits(), hn::IsNaN(value));
    const auto chosen = hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(Bits(), 0x40)), rounded);
    const hn::Rebind<std::int32_t, Tag> narrowable;
    hn::StoreU(hn::DemoteTo(Half(), hn::BitCast(narrowable, chosen)), Half(), to);
  }
};

struct Sum {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Max {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::IfThenElse(hn::Gt(a, b), a, b);
    }
  }
};

using Inputs = std::span<const std::byte* const>;
using Outputs = std::span<std::byte* const>;

template <class Format, class Combine>
void reduce_as(Outputs outputs, Inputs inputs, std::int64_t count, const Combine& combine) {
  using Element = typename Format::Element;
  const auto input = [&](std::size_t n) { return reinterpret_cast<const Element*>(inputs[n]); };
  const auto output = [&](std::size_t n) { return reinterpret_cast<Element*>(outputs[n]); };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(typename Format::Tag()));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto a = Format::load(input(0) + i), b = Format::load(input(0) + i + lanes);
    auto c = Format::load(input(0) + i + 2 * lanes), d = Format::load(input(0) + i + 3 * lanes);
    for (std::size_t n = 1; n < inputs.size(); ++n) {
      a = combine(a, Format::load(input(n) + i));
      b = combine(b, Format::load(input(n) + i + lanes));
      c = combine(c, Format::load(input(n) + i + 2 * lanes));
      d = combine(d, Format::load(input(n) + i + 3 * lanes));
    }
    for (std::size_t n = 0; n < outputs.size(); ++n) {
      Format::store(a, output(n) + i);
      Format::store(b, output(n) + i + lanes);
      Format::store(c, output(n) + i + 2 * lanes);
      Format::store(d, output(n) + i + 3 * lanes);
    }
  }
  for (; i < count; i += lanes) {  // what is left, a vector or a part of one at a time
    HWY_ALIGN Element part[HWY_LANES(Element)] = {};
    const std::size_t bytes = static_cast<std::size_t>(std::min(lanes, count - i)) * sizeof(Element);
    std::memcpy(part, input(0) + i, bytes);
    auto value = Format::load(part);
    for (std::size_t n = 1; n < inputs.size(); ++n) {
      std::memcpy(part, input(n) + i, bytes);
      value = combine(value, Format::load(part));
    }
    Format::store(value, part);
    for (std::size_t n = 0; n < outputs.size(); ++n) std::memcpy(output(n) + i, part, bytes);
  }
}

template <class Combine>
void reduce_dtype(DType dtype, Outputs outputs, Inputs inputs, std::int64_t count, const Combine& combine) {
  switch (dtype) {
    case DType::kF64: return reduce_as<Plain<double>>(outputs, inputs, count, combine);
    case DType::kF32: return reduce_as<Plain<float>>(outputs, inputs, count, combine);
    case DType::kI64: return reduce_as<Plain<std::int64_t>>(outputs, inputs, count, combine);
    case DType::kI32: return reduce_as<Plain<std::int32_t>>(outputs, inputs, count, combine);
    case DType::kBF16: return reduce_as<BFloat16>(outputs, inputs, count, combine);
    default: throw InternalError("only numbers are reduced");
  }
}

void reduce_range(DType dtype, ReduceOp op, Outputs outputs, Inputs inputs, std::int64_t count) {
  if (op == ReduceOp::kSum) {
    reduce_dtype(dtype, outputs, inputs, count, Sum());
  } else {
    reduce_dtype(dtype, outputs, inputs, count, Max());
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

constexpr std::int64_t kGrain = 1 << 14;      // elements handed to a thread of a rank at a time
constexpr std::int64_t kCopyGrain = 1 << 16;  // bytes

HWY_EXPORT(reduce_range);

// Not every instruction set converts this format, subnormals included, so no vectors.
void reduce_f16(ReduceOp op, std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto input = [&](std::size_t n) {
      return f16_to_float(reinterpret_cast<const std::uint16_t*>(inputs[n])[i]);
    };
    float value = input(0);
    for (std::size_t n = 1; n < inputs.size(); ++n) {
      const float next = input(n);
      if (op == ReduceOp::kSum) {
        value += next;
      } else if (!(value > next || std::isnan(value))) {
        value = next;
      }
    }
    for (std::byte* const output : outputs) reinterpret_cast<std::uint16_t*>(output)[i] = float_to_f16(value);
  }
}

}  // namespace

void reduce_elements(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                     std::span<const std::byte* const> inputs, std::int64_t count) {
  if (dtype == DType::kF16) return reduce_f16(op, outputs, inputs, count);
  HWY_DYNAMIC_DISPATCH(reduce_range)(dtype, op, outputs, inputs, count);
}

void HostStream::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (to == from) return;
  parallel_for(bytes, kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

void HostStream::reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                        std::span<const std::byte* const> inputs, std::int64_t count) {
  const std::int64_t size = size_of(dtype);
  parallel_for(count, kGrain, [&](std::int64_t first, std::int64_t last) {
    std::vector<const std::byte*> from(inputs.begin(), inputs.end());
    std::vector<std::byte*> to(outputs.begin(), outputs.end());
    for (const std::byte*& input : from) input += first * size;
    for (std::byte*& output : to) output += first * size;
    reduce_elements(dtype, op, to, from, last - first);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
