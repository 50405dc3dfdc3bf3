// The search over batch size and learning rate before the runs that count (Megatron-LM section 5.3, which has it from
// RoBERTa, arXiv 1907.11692): a run of one seed at each point; the highest validation score chooses.
#pragma once

#include <span>

#include "finetune/config.h"

namespace teratron {

// --search and what its points are.
void add_search_fields(FieldList& list, FinetuneConfig& config);
Faults search_faults(const FinetuneConfig& config);

// Fills in the points and the number of seeds where they are not given. Without any of --search-batch-sizes,
// --search-lrs, --global-batch-size and --lr the points are those of RoBERTa (MNLI and QQP: section 5.1) or BERT (SQuAD
// and RACE: arXiv 1810.04805, appendix A.3) and that of Table 6.
void fill_in_search(FinetuneConfig& config, FieldList& fields);

// The points for so many examples: a batch that they do not fill is one of all of them, and a point is tried once.
std::vector<SearchPoint> search_points(const FinetuneConfig& config, std::int64_t examples);

// The runs of a point: they save to a folder of its own in --save, to seed-N in it. The chosen point's first run is the
// one that was searched with.
FinetuneConfig at_point(const FinetuneConfig& config, const SearchPoint& point);

// The highest; of equal ones the first.
std::size_t best_of(std::span<const double> scores);

}  // namespace teratron
