// The largest batch that devices hold: the most sequences of an update whose activations are in memory at once (the
// batches of TeraPipe's settings, arXiv 2102.07988, section 4). So run GPipe's and TeraPipe's schedules, of which more
// micro-batches take more memory, and a single stage that takes its share of the batch at a time. Schedules that begin
// backward passes early hold a number of micro-batches that the stages set, so any batch fits that fits at all.
//
// Halving finds each layout's most, by the bound and then by plans. A pipeline's memory is linear in its micro-batches,
// so plans of a few of them give that of all.
#pragma once

#include "plan/search/layout_search.h"

namespace teratron::plan {

// The largest batch of each (tp, pp, dp), which the configuration of the result has; largest first, of equal ones the
// fastest. Micro-batches of a pipeline have one sequence, which takes least memory, or what is fixed, and tokens are
// cut only as is fixed: slices take less for workspaces and more for caches. `request`'s batch does not matter;
// a schedule that is fixed has its own. UserError where no such layout has as many devices or fewer.
SearchResult largest_batches(const PlanRequest& request, std::size_t runners_up = 5);

}  // namespace teratron::plan
