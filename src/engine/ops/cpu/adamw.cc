// The AdamW update (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) in one pass over memory, and the sum of
// squares for the gradient's norm. An update moves 28 bytes per parameter, in fp32 and with masters in halves; 8 fewer
// where the moments are bf16, 2 more where rounded weights stand beside their masters.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/adamw.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Moments that fp32 stores as they are.
struct StoredAsTheyAre {
  HWY_INLINE FloatVector moment1(FloatVector moment, std::int64_t) const { return moment; }
  HWY_INLINE FloatVector moment2(FloatVector moment, std::int64_t) const { return moment; }
};

// Moments that are rounded to bf16 stochastically, a run of elements at a time: its random words stay in the
// first-level cache.
class RoundedByChance {
 public:
  static constexpr std::int64_t kRun = block_size(512, 4);  // elements

  explicit HWY_INLINE RoundedByChance(const RandomStream& random) : random_(random) {}

  // Makes ready elements [first, first + count) of the whole tensor; count at most kRun.
  HWY_INLINE void generate(std::int64_t first, std::int64_t count) {
    constexpr std::int64_t kBlocksAtOnce = HWY_LANES(std::uint32_t);
    const std::int64_t blocks = (first % 4 + count + 3) / 4;
    for (std::int64_t block = 0; block < blocks; block += kBlocksAtOnce) {
      philox_blocks(random_, static_cast<std::uint64_t>(first / 4 + block),
                    reinterpret_cast<std::uint16_t*>(words_ + block * 4));
    }
    offset_ = first % 4;
  }

  HWY_INLINE FloatVector moment1(FloatVector moment, std::int64_t index) const {
    return rounded(moment, hn::And(words(index), hn::Set(WordTag(), 0xFFFF)));
  }
  HWY_INLINE FloatVector moment2(FloatVector moment, std::int64_t index) const {
    return rounded(moment, hn::ShiftRight<16>(words(index)));
  }

 private:
  // Random words of elements index, index + 1, ..
  HWY_INLINE WordVector words(std::int64_t index) const { return hn::LoadU(WordTag(), words_ + offset_ + index); }
  // A value that bf16 has (bf16_by_chance).
  static HWY_INLINE FloatVector rounded(FloatVector moment, WordVector random) {
    const WordTag words;
    const WordVector bits = hn::Add(hn::BitCast(words, moment), random);
    const FloatVector cut = hn::BitCast(FloatTag(), hn::And(bits, hn::Set(words, 0xFFFF0000)));
    return hn::IfThenElse(hn::IsNaN(moment), moment, cut);
  }

  RandomStream random_;
  std::int64_t offset_ = 0;
  // The run, the elements before it in its first block, and those that the last group of blocks and a last vector reach
  // beyond it.
  HWY_ALIGN std::uint32_t words_[kRun + 8 + 8 * HWY_LANES(std::uint32_t)];
};

// Weights of fp32.
struct Weights {
  float* value;

  explicit Weights(const AdamWParameter& of) : value(of.value.as<float>()) {}
  template <class Access>
  HWY_INLINE FloatVector load(std::int64_t i, Access access) const {
    return access.load(value + i);
  }
  template <class Access>
  HWY_INLINE void store(FloatVector updated, std::int64_t i, Access access) const {
    access.store(updated, value + i);
  }
};

// Masters of fp32 beside weights that are rounded from them.
template <class T>
struct Masters : Weights {
  T* working;

  explicit Masters(const AdamWParameter& of) : Weights(of), working(of.working.as<T>()) {}
  template <class Access>
  HWY_INLINE void store(FloatVector updated, std::int64_t i, Access access) const {
    Weights::store(updated, i, access);
    access.store(updated, working + i);
  }
};

// Masters in halves: weights of bf16, and remainders (split_float).
struct SplitMasters {
  Bf16* nearest;
  std::uint16_t* remainder;

  explicit SplitMasters(const AdamWParameter& of)
      : nearest(of.working.as<Bf16>()), remainder(of.value.as<std::uint16_t>()) {}
  template <class Access>
  HWY_INLINE FloatVector load(std::int64_t i, Access access) const {
    const WordTag words;
    const WordVector upper = hn::BitCast(words, access.load(nearest + i)), lower = access.load_halves(remainder + i);
    // Signed: half a step of bf16, 0x8000, is below 0.
    const WordVector half = hn::Set(words, 0x8000);
    return hn::BitCast(FloatTag(), hn::Add(upper, hn::Sub(hn::Xor(lower, half), half)));
  }
  template <class Access>
  HWY_INLINE void store(FloatVector updated, std::int64_t i, Access access) const {
    const WordTag words;
    const WordVector bits = hn::BitCast(words, updated);
    const auto is_midway = hn::Eq(hn::And(bits, hn::Set(words, 0xFFFF)), hn::Set(words, 0x8000));
    const WordVector one = hn::Set(words, 1), is_odd = hn::And(hn::ShiftRight<16>(bits), one);
    const WordVector moved = hn::Sub(hn::Add(bits, hn::Add(is_odd, is_odd)), one);
    const WordVector kept = hn::IfThenElse(is_midway, moved, bits);
    access.store(hn::BitCast(FloatTag(), kept), nearest + i);
    access.store_halves(kept, remainder + i);
  }
};

// Updates elements [begin, end). M: type of the moments.
template <class Values, class M>
void adamw_range(const AdamW& args, const AdamWParameter& of, std::int64_t begin, std::int64_t end) {
  const Values value(of);
  const float* const gradient = of.gradient.as<float>();
  M *const moment1 = of.moment1.as<M>(), *const moment2 = of.moment2.as<M>();
  const auto rounded = [](double number) HWY_ATTR { return constant(static_cast<float>(number)); };
  const FloatVector scale = rounded(args.gradient_scale), epsilon = rounded(args.epsilon);
  const FloatVector beta1 = rounded(args.beta1), rest1 = rounded(1 - args.beta1);
  const FloatVector beta2 = rounded(args.beta2), rest2 = rounded(1 - args.beta2);
  const FloatVector inverse2 = rounded(1 / args.correction2);
  const FloatVector keep = rounded(1 - args.learning_rate * of.weight_decay);
  const FloatVector rate = rounded(args.learning_rate / args.correction1);
  // Updates a vector of elements, i of the parameter and `in_run` of the run that `stored` has random words for.
  const auto update = [&](std::int64_t i, std::int64_t in_run, const auto& stored, auto access) HWY_ATTR {
    const FloatVector g = hn::Mul(scale, access.load(gradient + i));
    const FloatVector m = hn::MulAdd(beta1, access.load(moment1 + i), hn::Mul(rest1, g));
    const FloatVector v = hn::MulAdd(beta2, access.load(moment2 + i), hn::Mul(hn::Mul(rest2, g), g));
    const FloatVector root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), epsilon);
    const FloatVector decayed = hn::Mul(keep, value.load(i, access));
    const FloatVector updated = hn::Sub(decayed, hn::Div(hn::Mul(rate, m), root));
    value.store(updated, i, access);
    access.store(stored.moment1(m, in_run), moment1 + i);
    access.store(stored.moment2(v, in_run), moment2 + i);
  };
  if constexpr (std::is_same_v<M, float>) {
    for_each_vector(end - begin,
                    [&](std::int64_t i, auto access) HWY_ATTR { update(begin + i, i, StoredAsTheyAre(), access); });
  } else {
    RoundedByChance stored(of.rounding);
    for (std::int64_t first = begin; first < end;) {
      const std::int64_t count = std::min({end - first, of.indices.left_in_run(first), RoundedByChance::kRun});
      stored.generate(of.indices.of(first), count);
      for_each_vector(count, [&](std::int64_t i, auto access) HWY_ATTR { update(first + i, i, stored, access); });
      first += count;
    }
  }
}

template <class T>
float sum_of_squares_range(const void* data, std::int64_t begin, std::int64_t count) {
  const T* const values = static_cast<const T*>(data) + begin;
  return sum_over(count, [&](std::int64_t i, auto access) HWY_ATTR {
    const FloatVector value = access.load(values + i);
    return hn::Mul(value, value);
  });
}

using AdamWRange = void (*)(const AdamW&, const AdamWParameter&, std::int64_t, std::int64_t);
using SquaresRange = float (*)(const void*, std::int64_t, std::int64_t);

template <class M>
AdamWRange adamw_kernel_of(const AdamWParameter& first) {
  if (!first.working) return &adamw_range<Weights, M>;
  return choose_by_storage(first.working.dtype, []<class T>(ElementType<T>) -> AdamWRange {
    return &adamw_range<std::conditional_t<std::is_same_v<T, Bf16>, SplitMasters, Masters<T>>, M>;
  });
}

AdamWRange adamw_kernel(const AdamWParameter& first) {
  return first.moment1.dtype == DType::kBF16 ? adamw_kernel_of<Bf16>(first) : adamw_kernel_of<float>(first);
}

SquaresRange sum_of_squares_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> SquaresRange { return &sum_of_squares_range<T>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(adamw_kernel);
HWY_EXPORT(sum_of_squares_kernel);

constexpr std::int64_t kGrain = block_size(1 << 15, 2);         // parameters handed to a thread at a time
constexpr std::int64_t kSquaresBlock = block_size(1 << 12, 2);  // squares added in fp32 before double takes over

double sum_of_view(const TensorRef& view) {
  const std::int64_t count = view.elements();
  if (view.dtype == DType::kF64) {
    const double* const values = view.as<double>();
    return std::inner_product(values, values + count, values, 0.0);
  }
  const auto kernel = HWY_DYNAMIC_DISPATCH(sum_of_squares_kernel)(view.dtype);
  float* const parts = scratch_floats(Scratch::kReduction, (count + kSquaresBlock - 1) / kSquaresBlock);
  parallel_for(count, 8 * kSquaresBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; block += kSquaresBlock) {
      parts[block / kSquaresBlock] = kernel(view.data, block, std::min(kSquaresBlock, end - block));
    }
  });
  double sum = 0;
  for (std::int64_t block = 0; block * kSquaresBlock < count; ++block) sum += double{parts[block]};
  return sum;
}

}  // namespace

void include_sum_of_squares(std::int64_t elements, ScratchSizes& sizes) {
  sizes.include(Scratch::kReduction, (elements + kSquaresBlock - 1) / kSquaresBlock);
}

void CpuBackend::do_adamw(const AdamW& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(adamw_kernel)(args.parameters.front());
  for (const AdamWParameter& of : args.parameters) {
    parallel_for(of.value.elements(), kGrain,
                 [&](std::int64_t begin, std::int64_t end) { kernel(args, of, begin, end); });
  }
}

double CpuBackend::do_sum_of_squares(std::span<const TensorRef> views) {
  double sum = 0;
  for (const TensorRef& view : views) sum += sum_of_view(view);
  return sum;
}

}  // namespace teratron
#endif  // HWY_ONCE
