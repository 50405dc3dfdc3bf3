#pragma once

namespace teratron {

// The next multiple of `unit` that is not below `value`.
template <class Integer>
constexpr Integer round_up(Integer value, Integer unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace teratron
