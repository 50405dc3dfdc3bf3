#include "plan/reproduction/reproduction.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "plan/costs/cost_constants.h"

namespace teratron::plan {
namespace {

struct Paper {
  std::string_view name;
  Reproduction (*reproduce)();
};
constexpr std::array kPapers = {Paper{"megatron", reproduce_megatron},
                                Paper{"terapipe", reproduce_terapipe},
                                Paper{"llama3", reproduce_llama3},
                                Paper{"seq1f1b", reproduce_seq1f1b},
                                Paper{"zero-bubble", reproduce_zero_bubble},
                                Paper{"mosaicml", [] { return reproduce_published("mosaicml"); }},
                                Paper{"llmq", [] { return reproduce_published("llmq"); }},
                                Paper{"torchtitan", [] { return reproduce_published("torchtitan"); }},
                                Paper{"selene", [] { return reproduce_published("selene"); }},
                                Paper{"megatron-gpt", [] { return reproduce_published("megatron-gpt"); }},
                                Paper{"nemo", [] { return reproduce_published("nemo"); }},
                                Paper{"dgxc", [] { return reproduce_published("dgxc"); }},
                                Paper{"vtrain", [] { return reproduce_published("vtrain"); }},
                                Paper{"bloom", [] { return reproduce_published("bloom"); }},
                                Paper{"all", reproduce_all_published}};

}  // namespace

std::vector<std::string_view> reproduction_names() {
  std::vector<std::string_view> names;
  for (const Paper& paper : kPapers) names.push_back(paper.name);
  return names;
}

Reproduction reproduce(std::string_view name) {
  for (const Paper& paper : kPapers) {
    if (paper.name == name) return paper.reproduce();
  }
  throw_user_error("there is no paper '{}' to reproduce; there are {}", name, fmt::join(reproduction_names(), ", "));
}

ReproducedCell ratio_of(const ReproducedCell& cell, const ReproducedCell& base) {
  return {.table = cell.table,
          .name = fmt::format("{} beside {}", cell.name, base.name),
          .unit = "x",
          .source = cell.source,
          .published = cell.published / base.published,
          .ours = cell.ours / base.ours,
          .teratron = cell.teratron.value() / base.teratron.value(),
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
