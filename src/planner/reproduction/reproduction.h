// Published figures of papers beside what this cost model says, and beside what Teratron's own program would
// take. Megatron-LM (arXiv 1909.08053): sections 1 and 5.1, Table 2, Appendix D and, of its first version, days and
// operations of the whole run. TeraPipe (arXiv 2102.07988): section 3.2's figure of a layer, and section 4. Beside them
// Llama 3 (arXiv 2407.21783): Table 4. And two heirs: Seq1F1B (arXiv 2406.03488), throughput and memory, and
// zero-bubble pipelines (arXiv 2401.10241), Table 4. Then the runs of data/published, of which a half judges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace teratron::plan {

struct ReproducedCell {
  std::string table, name, unit;   // "Figure 5, with slices", "setting 8", "s"; judgement.h reads the unit
  std::string source;              // "supplement", "section 4.1": where the paper says the published value
  double published = 0, ours = 0;  // ours: the paper's program on the paper's cluster, by this cost model
  std::optional<double> teratron = std::nullopt;  // Teratron's program there (run_by_teratron()); none: no meaning
  bool is_fitted = false;  // constants were fitted to all runs that the cell is of; the others are predictions
  std::string uncounted;   // why it is in no score: "by definition", "derived" from others, ..; empty: it is counted
  std::string cause;       // why it is missed, if that is known; says nothing about whether it is
  std::string assumed;     // what the name does not say; may be empty

  std::string full_name() const { return table + ", " + name; }
};

// The ratio of two cells of a table as a cell: "ZB-1p beside 1F1B".
ReproducedCell ratio_of(const ReproducedCell& cell, const ReproducedCell& base);

// Series that the paper shows in a picture or a sentence, without a number for each point.
struct Curve {
  struct Point {
    std::string x;
    double ours = 0;
    std::optional<double> teratron = std::nullopt;
  };
  std::string title, x_axis, unit;
  std::string published;  // what the paper says of it, and where
  std::vector<Point> points;
};

// The slices of a sequence that the paper's program found beside our slicer's, and the seconds of an iteration with
// either by this cost model.
struct SlicingPair {
  std::string name;    // "setting 8"
  std::string source;  // of the published slices
  std::vector<std::int64_t> published, ours;
  double seconds_of_published = 0, seconds_of_ours = 0;
};

// Pairs of plans of one model whose published times differ by more than 5 %: their number, and those that this cost
// model ranks the other way round.
struct RankedPairs {
  int pairs = 0;
  std::vector<std::string> wrong;
};

// Several layouts of one model on the same devices, of one source: the fastest by this cost model, and the fastest as
// published.
struct LayoutChoice {
  std::size_t layouts = 0;
  std::string chosen, fastest;  // of runs
  double lost = 0;              // of the fastest one's speed, by choosing
};

struct Reproduction {
  std::string title;
  std::vector<ReproducedCell> cells;
  std::vector<Curve> curves;
  std::vector<SlicingPair> slicings;
  std::optional<RankedPairs> ranking;
  std::vector<LayoutChoice> choices = {};  // that lost most, first
  std::vector<Constant> fitted;
  bool is_summary = false;  // cells are shown by their tables' beginnings and halves, not one by one
};

std::vector<std::string_view> reproduction_names();
// UserError: an unknown name; the message lists those there are.
Reproduction reproduce(std::string_view name);

std::string text_of(const Reproduction& reproduction);  // tables, for people
std::string to_json(const Reproduction& reproduction);  // all of it, and the scores
std::string to_svg(const Reproduction& reproduction);   // bars of every table and curve

Reproduction reproduce_paper(std::string_view name);  // of data/papers
Reproduction reproduce_terapipe(std::string_view name);
Reproduction reproduce_published(std::string_view name);      // of data/published
Reproduction reproduce_all_published(std::string_view name);  // of all its files

// The constants of a cluster that were fitted to published cells.
std::vector<Constant> fitted_constants(const Cluster& cluster);

// A paper's cluster as Teratron's program would use it: the column "Teratron" of the tables. The machine stays:
// devices, links, the speed of sums over copies on them and their load on the passes beside them, the share of the
// peak. Constants counted from the paper's program get Teratron's value, the cost model's default: attention that
// writes no scores, caches that are not copied, gradients that products add up in fp32, recompute of only the
// activations that the backward needs. The time beside each kernel stays the paper's program's: Teratron's was never
// measured on a V100, and its back end refuses that card.
Cluster run_by_teratron(Cluster cluster);

}  // namespace teratron::plan
