// The learning rate as a pure function of how many updates were applied (Megatron-LM section 4: warm-up, then decay).
#pragma once

#include <cstdint>
#include <string_view>

namespace teratron {

enum class DecayStyle { kConstant, kLinear, kCosine };

struct LearningRateSchedule {
  double peak = 1.5e-4, minimum = 0;
  std::int64_t warmup = 0;  // updates of linear warm-up
  std::int64_t decay = 0;   // updates until the minimum, warm-up included
  DecayStyle style = DecayStyle::kCosine;

  // Of update number `update`, counted from 1: rises to the peak at `warmup`, falls to the minimum at `decay`, stays.
  double at(std::int64_t update) const;
};

}  // namespace teratron
