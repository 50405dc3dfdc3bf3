#include "plan/costs/cost_constants.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "options/reading.h"
#include "options/suggestion.h"

namespace teratron::plan {
namespace {

struct Known {
  std::string_view name;
  double CostConstants::*value;
  double by_default, least, most;
  std::string_view from;
};

constexpr std::array kKnown = {
    Known{"product_efficiency", &CostConstants::product_efficiency, 0.69, 1e-6, 1, "fitted to V100 (docs/plan.md)"},
    Known{"saturation", &CostConstants::saturation, 32, 0, 1e6,
          "a quarter of a product's tile of 128, half empty at worst"},
    Known{"loss_passes", &CostConstants::loss_passes, 6, 0, 1e3, "the most, the sum of exponentials and the gradient"},
    Known{"weight_passes", &CostConstants::weight_passes, 0, 0, 1e3, "arithmetic hides them"},
    Known{"memory_efficiency", &CostConstants::memory_efficiency, 0.8, 1e-6, 1, "what copies reach on V100 and later"},
    Known{"kernel_start", &CostConstants::kernel_start, 5e-6, 0, 1, "what the CUDA driver takes to start a kernel"},
    Known{"cores", &CostConstants::cores, 1, 1, 1e6, "a kernel takes the whole device"},
    Known{"lone_start", &CostConstants::lone_start, 0, 0, 1, "of no meaning without cores"},
    Known{"gradient_speed", &CostConstants::gradient_speed, 1, 0.1, 10, "as fast as the products of outputs"},
    Known{"attention_efficiency", &CostConstants::attention_efficiency, 0.5, 1e-6, 1,
          "FlashAttention-2 (arXiv 2307.08691): 50 to 73 % on A100"},
    Known{"writes_scores", &CostConstants::writes_scores, 0, 0, 1, "attention of this program's back ends"},
    Known{"score_passes", &CostConstants::score_passes, 13.7, 0, 1e3, "fitted to V100 (docs/plan.md)"},
    Known{"copies_cache", &CostConstants::copies_cache, 0, 0, 1, "caches of this program lie where they are"},
    Known{"adds_weight_gradients", &CostConstants::adds_weight_gradients, 0, 0, 1,
          "products of this program add to what is there"},
    Known{"recomputes_all", &CostConstants::recomputes_all, 0, 0, 1, "full recompute of this program"},
    Known{"gradient_bytes", &CostConstants::gradient_bytes, 4, 1, 8, "this program adds gradients up in fp32"},
    Known{"update_bytes", &CostConstants::update_bytes, 34, 0, 1e3,
          "norm: the gradient; AdamW: gradient, two moments, fp32 weight read, three and a 16-bit weight written"},
    Known{"sum_efficiency", &CostConstants::sum_efficiency, 1, 1e-6, 1, "not measured"},
    Known{"gather_slowdown", &CostConstants::gather_slowdown, 1, 0.01, 1000, "at the links' pace"},
    Known{"pace", &CostConstants::pace, 1, 1, 100, "passes are always as fast as they can be"},
    Known{"sum_interference", &CostConstants::sum_interference, 0, 0, 10, "not measured"},
    Known{"head_saturation", &CostConstants::head_saturation, 0, 0, 1e6, "as fast with narrow heads"},
    Known{"point_passes", &CostConstants::point_passes, 1, 0, 100, "as they are counted"},
    Known{"fp8_products", &CostConstants::fp8_products, 0, 0, 1, "this program's are of 16 bits"},
    Known{"fp8_efficiency", &CostConstants::fp8_efficiency, 0.69, 1e-6, 1, "as that of 16 bits"},
    Known{"scaling_passes", &CostConstants::scaling_passes, 2.5, 0, 100,
          "the largest value is sought, then it is read again and half as many bytes are written"},
    Known{"again_products", &CostConstants::again_products, 0, 0, 1, "by --recompute-granularity alone"},
    Known{"again_points", &CostConstants::again_points, 0, 0, 1, "by --recompute-granularity alone"},
    Known{"again_attention", &CostConstants::again_attention, 0, 0, 1, "by --recompute-granularity alone"},
    Known{"again_collectives", &CostConstants::again_collectives, 0, 0, 1, "by --recompute-granularity alone"},
    Known{"exposed_collectives", &CostConstants::exposed_collectives, 1, 0, 1, "this program's wait for them"},
    Known{"step_start", &CostConstants::step_start, 0, 0, 100, "none was measured"},
};

}  // namespace

CostConstants constants_of(const Cluster& cluster) {
  CostConstants constants;
  for (const Known& known : kKnown) constants.*known.value = known.by_default;
  std::vector<std::string> lines;
  for (const Constant& constant : cluster.constants) {
    const auto known =
        std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.name == constant.name; });
    if (known == kKnown.end()) {
      std::vector<std::string> names;
      for (const Known& k : kKnown) names.emplace_back(k.name);
      const std::string nearest = nearest_name(constant.name, names);
      lines.push_back(fmt::format("cluster '{}' has a constant '{}' that the cost model does not know; {}",
                                  shortened(cluster.name), shortened(constant.name),
                                  nearest.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                                  : fmt::format("did you mean '{}'?", nearest)));
    } else if (!(constant.value >= known->least && constant.value <= known->most)) {
      lines.push_back(fmt::format("constant '{}' of cluster '{}' is {}; it must be from {} to {}", constant.name,
                                  shortened(cluster.name), constant.value, known->least, known->most));
    } else {
      constants.*known->value = constant.value;
    }
  }
  throw_if_any(lines);
  return constants;
}

int cpu_threads(const Cluster& cluster) {
  const CostConstants constants = constants_of(cluster);
  const bool has_cores = std::ranges::count(cluster.constants, "cores", &Constant::name) > 0;
  return has_cores ? static_cast<int>(constants.cores) : 0;
}

std::vector<Constant> all_constants(const Cluster& cluster) {
  std::vector<Constant> all;
  for (const Known& known : kKnown) {
    const auto given = std::find_if(cluster.constants.begin(), cluster.constants.end(),
                                    [&](const Constant& constant) { return constant.name == known.name; });
    all.push_back(given != cluster.constants.end()
                      ? *given
                      : Constant{std::string(known.name), known.by_default, std::string(known.from)});
  }
  return all;
}

}  // namespace teratron::plan
