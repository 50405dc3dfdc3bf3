// The AdamW update (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2), sums of squares, and tallies.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "ops/backend.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

// Stored value of a moment: rounded to nearest, or to bf16 by chance.
template <class M>
M stored_moment(double moment, std::uint32_t random) {
  if constexpr (std::is_same_v<M, Bf16>) {
    return bf16_by_chance(std::bit_cast<std::uint32_t>(static_cast<float>(moment)), random);
  } else {
    return static_cast<M>(moment);
  }
}

// The weights that AdamW updates, alone or as masters beside weights that are rounded from them.
template <class C>
class Masters {
 public:
  explicit Masters(const AdamWParameter& of) : value_(of.value), working_(of.working), has_working_(of.working) {}

  double operator()(std::int64_t e) const { return double{value_(e)}; }
  void store(std::int64_t e, double updated) const {
    value_(e) = static_cast<Accumulator<C>>(updated);
    if (has_working_) working_(e) = static_cast<C>(value_(e));
  }

 private:
  Elements<Accumulator<C>> value_;
  Elements<C> working_;
  bool has_working_;
};

// Masters in halves: weights of bf16, and remainders.
class SplitMasters {
 public:
  explicit SplitMasters(const AdamWParameter& of) : remainder_(of.value), nearest_(of.working) {}

  double operator()(std::int64_t e) const {
    return double{std::bit_cast<float>(joined_bits({.nearest = nearest_(e), .remainder = remainder_(e)}))};
  }
  void store(std::int64_t e, double updated) const {
    const SplitFloat halves = split_float(std::bit_cast<std::uint32_t>(static_cast<float>(updated)));
    nearest_(e) = halves.nearest;
    remainder_(e) = halves.remainder;
  }

 private:
  Elements<std::uint16_t> remainder_;
  Elements<Bf16> nearest_;
};

// M: type of the moments.
template <class C, class M, class Masters>
void adamw_with(const AdamW& args) {
  for (const AdamWParameter& of : args.parameters) {
    const Masters value(of);
    const Elements<Accumulator<C>> gradient(of.gradient);
    const Elements<M> moment1(of.moment1), moment2(of.moment2);
    for (std::int64_t e = 0; e < of.value.elements(); ++e) {
      const double g = args.gradient_scale * gradient(e);
      const double m = args.beta1 * moment1(e) + (1 - args.beta1) * g;
      const double v = args.beta2 * moment2(e) + (1 - args.beta2) * g * g;
      const double step = (m / args.correction1) / (std::sqrt(v / args.correction2) + args.epsilon);
      const double decayed = value(e) * (1 - args.learning_rate * of.weight_decay);
      value.store(e, decayed - args.learning_rate * step);
      const auto index = static_cast<std::uint64_t>(of.indices.of(e));
      const std::uint32_t random = std::is_same_v<M, Bf16> ? of.rounding.bits(index / 4)[index % 4] : 0;
      moment1(e) = stored_moment<M>(m, random);
      moment2(e) = stored_moment<M>(v, random >> 16);
    }
  }
}

template <class C, class Masters>
void adamw_of(const AdamW& args) {
  if (args.parameters.front().moment1.dtype == DType::kBF16) return adamw_with<C, Bf16, Masters>(args);
  adamw_with<C, Accumulator<C>, Masters>(args);
}

template <class C>
void adamw(const AdamW& args) {
  if (args.parameters.front().value.dtype == DType::kU16) return adamw_of<C, SplitMasters>(args);
  adamw_of<C, Masters<C>>(args);
}

template <class T>
double sum_of_squares(const TensorRef& view) {
  const Elements<T> x(view);
  double sum = 0;
  for (std::int64_t e = 0; e < view.elements(); ++e) sum += double{x(e)} * double{x(e)};
  return sum;
}

template <class T>
void tally(Tally& tally, const TensorRef& view) {
  const Elements<T> x(view);
  double largest = double{tally.largest};
  for (std::int64_t e = 0; e < view.elements(); ++e) {
    const double value = double{x(e)};
    tally.squares += value * value;
    if (std::isnan(value) || std::abs(value) > largest) largest = std::abs(value);  // a NaN stays
    std::uint32_t words[2] = {};
    std::memcpy(words, view.as<T>() + e, sizeof(T));
    tally.bits += words[0] + words[1];
  }
  tally.largest = static_cast<float>(largest);
}

}  // namespace teratron::reference
