#include "ops/cpu_instructions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/simd/simd_targets.h"
//
#include "hwy/targets.h"

namespace teratron {
namespace {

// A set, and Highway's target of its vectors; 0: the one that the compiler may always use.
struct Level {
  std::string_view name;
  std::int64_t target;
  bool bf16_products = false;
};

#if defined(__aarch64__)
constexpr Level kLevels[] = {{"neon", 0}, {"bfmmla", 0, true}};
#elif defined(__x86_64__)
constexpr Level kLevels[] = {
    {"baseline", 0}, {"avx2", HWY_AVX2}, {"avx512", HWY_AVX3}, {"avx512-bf16", HWY_AVX3, true}};
#else
constexpr Level kLevels[] = {{"baseline", 0}};
#endif

// The processor's and this build's sets, the smallest first.
std::vector<Level> levels_here() {
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  std::vector<Level> here;
  for (const Level& level : kLevels) {
    if ((level.target == 0 || (level.target & targets) != 0) && (!level.bf16_products || has_bf16_products())) {
      here.push_back(level);
    }
  }
  return here;
}

// On Intel's Sapphire Rapids (without AMX), training by VDPBF16PS took 1.66 times as long as in widened products
// (bench/results/adapters.md). On Zen 4 and 5 it is twice as fast.
bool are_bf16_products_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return true;
#endif
}

Level find_level(std::string_view name) {
  std::vector<Level> here = levels_here();
  if (name.empty()) {
    if (!are_bf16_products_fast()) std::erase_if(here, [](const Level& level) { return level.bf16_products; });
    return here.back();
  }
  const auto* const level = std::ranges::find(kLevels, name, &Level::name);
  const auto names = [](const auto& levels) {
    std::vector<std::string_view> all;
    for (const Level& one : levels) all.push_back(one.name);
    return all;
  };
  if (level == std::end(kLevels)) {
    throw_user_error("TERATRON_INSTRUCTIONS={}: expected one of {}, or no such variable", name,
                     fmt::join(names(kLevels), ", "));
  }
  if (std::ranges::find(here, name, &Level::name) == here.end()) {
    throw_user_error(
        "TERATRON_INSTRUCTIONS={}: this processor, or this build of Teratron, has {} alone; name one of these, or "
        "unset "
        "the variable",
        name, fmt::join(names(here), ", "));
  }
  return *level;
}

Instructions instructions_of(const Level& level, bool is_asked_for) {
  // A set that is asked for stands for a processor: one with AVX512-BF16 has AVX512-VNNI, too, and others lack VNNI.
  const bool vnni = !is_asked_for || level.bf16_products;
  return {level.name, level.bf16_products, vnni, is_asked_for};
}

Instructions choose_instructions() {
  const char* const variable = std::getenv("TERATRON_INSTRUCTIONS");
  const std::string_view asked = variable == nullptr ? "" : variable;
  const Level level = find_level(asked);
  if (!asked.empty()) hwy::DisableTargets(~level.target);  // all but the target and the compiler's own
  return instructions_of(level, !asked.empty());
}

}  // namespace

const Instructions& instructions_in_use() {
  static const Instructions chosen = choose_instructions();
  return chosen;
}

Instructions find_instructions(std::string_view name) { return instructions_of(find_level(name), !name.empty()); }

}  // namespace teratron
