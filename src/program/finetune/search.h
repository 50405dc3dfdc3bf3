// Search over batch size and learning rate before the final runs (Megatron-LM section 5.3, after RoBERTa, arXiv
// 1907.11692): one run at each point; the highest validation score chooses.
#pragma once

#include <span>
#include <string>

#include "finetune/config.h"

namespace teratron {

// Adds --search and the flags of its points.
void add_search_fields(FieldList& list, FinetuneConfig& config);
Faults search_faults(const FinetuneConfig& config);

// Fills in points and number of seeds that are not given. Without --search-batch-sizes, --search-lrs,
// --global-batch-size and --lr the points are those of RoBERTa (MNLI and QQP: section 5.1) or BERT (the others:
// arXiv 1810.04805, appendix A.3), and that of Table 6.
void fill_in_search(FinetuneConfig& config, FieldList& fields);

// Points for so many examples: a batch is at most all examples, and equal points are tried once.
std::vector<SearchPoint> search_points(const FinetuneConfig& config, std::int64_t examples);

// Settings of a point's runs. They save to the point's folder in --save, to seed-N in it. The chosen point's first run
// is the searched one.
FinetuneConfig at_point(const FinetuneConfig& config, const SearchPoint& point);

// Gives the outputs of one of several runs its name: a folder in those folders, and a trace beside those of the others.
void name_outputs(OutputSettings& output, const std::string& name);

// Index of the highest score; of equal ones the first.
std::size_t best_of(std::span<const double> scores);

}  // namespace teratron
