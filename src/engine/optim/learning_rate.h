// The learning rate as a pure function of how many updates were applied (Megatron-LM section 4: warm-up, then decay),
// or warm-up, a stable phase, and a decay at the end (WSD: Hu et al., MiniCPM, arXiv 2404.06395, section 4).
#pragma once

#include <cstdint>
#include <string_view>

namespace teratron {

enum class DecayStyle { kConstant, kLinear, kCosine, kWsd };

// The curve of WSD's last phase, over the share r of it that is done: 1 - r, (1 + cos(pi r)) / 2, 2^(1 - r) - 1 or
// 1 - sqrt(r). Megatron-LM's names.
enum class WsdDecayStyle { kLinear, kCosine, kExponential, kMinusSqrt };

struct LearningRateSchedule {
  double peak = 1.5e-4, minimum = 0;
  std::int64_t warmup = 0;  // updates of linear warm-up
  std::int64_t decay = 0;   // updates until the minimum, warm-up included
  DecayStyle style = DecayStyle::kCosine;
  std::int64_t wsd_decay = 0;  // of WSD: the last updates before `decay`, in which it falls
  WsdDecayStyle wsd_style = WsdDecayStyle::kExponential;

  // Rate of update number `update`, counted from 1. It rises to the peak at `warmup`, falls to the minimum at `decay`,
  // and stays; with kConstant it stays at the peak.
  double at(std::int64_t update) const;
  // The last update at the peak.
  std::int64_t fall_begins() const { return style == DecayStyle::kWsd ? decay - wsd_decay : warmup; }
};

}  // namespace teratron
