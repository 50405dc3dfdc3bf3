#pragma once

namespace teratron {

// Smallest multiple of `unit` that is at least `value`.
template <class Integer>
constexpr Integer round_up(Integer value, Integer unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace teratron
