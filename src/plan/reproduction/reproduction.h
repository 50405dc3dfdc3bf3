// What the two papers measured beside what this cost model says: times of whole steps and their ratios. Megatron-LM
// (arXiv 1909.08053): section 5.1, Appendix D and, of its first version, section 4.3's days and operations. TeraPipe
// (arXiv 2102.07988): section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace teratron::plan {

struct ReproducedCell {
  std::string name, unit;  // "weak scaling, TP 8", "%"; pictures show what stands before the comma side by side
  double published = 0, ours = 0;
  bool is_fitted = false;                 // constants were fitted to it; the others are predictions
  std::string unmet;                      // why ours is far off; empty: it is not
  std::string assumed;                    // beside what the title says; may be empty
  std::vector<std::int64_t> slices = {};  // of a sequence, where our slicer chose them

  double error() const { return ours / published - 1; }
};

// Plans of one model of which the published times differ by more than 5 %: how many, and of those which are the other
// way round here.
struct RankedPairs {
  int pairs = 0;
  std::vector<std::string> wrong;
};

struct Reproduction {
  std::string title;
  std::vector<ReproducedCell> cells;
  std::vector<Constant> fitted;
  std::optional<RankedPairs> ranking;

  double mean_error() const, worst_error() const;  // relative, without sign
  Reproduction without_unmet() const;              // of the cells that no cause keeps from being met
};

// "megatron" and "terapipe". UserError lists the names there are.
std::vector<std::string_view> reproduction_names();
Reproduction reproduce(std::string_view name);

std::string text_of(const Reproduction& reproduction);  // tables, for people
std::string to_json(const Reproduction& reproduction);  // cells, mean_error, worst_error, fitted, ranking
std::string to_svg(const Reproduction& reproduction);   // published and ours side by side

Reproduction reproduce_megatron();
Reproduction reproduce_terapipe();

}  // namespace teratron::plan
