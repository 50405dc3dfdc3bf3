#include "reproduction/reproduction.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "plan/costs/cost_constants.h"

namespace teratron::plan {
namespace {

struct Named {
  std::string_view name;
  Reproduction (*reproduce)(std::string_view name);
};
constexpr std::array kNamed = {Named{"megatron", reproduce_paper},    Named{"terapipe", reproduce_terapipe},
                               Named{"llama3", reproduce_paper},      Named{"seq1f1b", reproduce_paper},
                               Named{"zero-bubble", reproduce_paper}, Named{"mosaicml", reproduce_published},
                               Named{"llmq", reproduce_published},    Named{"torchtitan", reproduce_published},
                               Named{"selene", reproduce_published},  Named{"megatron-gpt", reproduce_published},
                               Named{"nemo", reproduce_published},    Named{"dgxc", reproduce_published},
                               Named{"vtrain", reproduce_published},  Named{"bloom", reproduce_published},
                               Named{"all", reproduce_all_published}};

}  // namespace

std::vector<std::string_view> reproduction_names() {
  std::vector<std::string_view> names;
  for (const Named& one : kNamed) names.push_back(one.name);
  return names;
}

Reproduction reproduce(std::string_view name) {
  for (const Named& one : kNamed) {
    if (one.name == name) return one.reproduce(name);
  }
  throw_user_error("there is no paper '{}' to reproduce; there are {}", name, fmt::join(reproduction_names(), ", "));
}

ReproducedCell ratio_of(const ReproducedCell& cell, const ReproducedCell& base) {
  const bool is_by_teratron = cell.teratron && base.teratron;
  return {.table = cell.table,
          .name = fmt::format("{} beside {}", cell.name, base.name),
          .unit = "x",
          .source = cell.source,
          .published = cell.published / base.published,
          .ours = cell.ours / base.ours,
          .teratron = is_by_teratron ? std::optional(*cell.teratron / *base.teratron) : std::nullopt,
          .is_fitted = cell.is_fitted && base.is_fitted};
}

std::vector<Constant> fitted_constants(const Cluster& cluster) {
  std::vector<Constant> fitted;
  for (const Constant& constant : all_constants(cluster)) {
    if (constant.from.find("fitted") != std::string::npos) fitted.push_back(constant);
  }
  return fitted;
}

Cluster run_by_teratron(Cluster cluster) {
  constexpr std::array<std::string_view, 3> kKept = {"kernel_start", "sum_efficiency", "sum_interference"};
  std::erase_if(cluster.constants,
                [&](const Constant& constant) { return std::ranges::find(kKept, constant.name) == kKept.end(); });
  return cluster;
}

}  // namespace teratron::plan
