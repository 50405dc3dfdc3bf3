#include "executor/stage/stage_cells.h"

#include <algorithm>

#include "base/error.h"

namespace teratron {

StageCells::StageCells(std::int64_t layers, const ExecutorOptions& options, GroupRank pipeline)
    : map_{pipeline.size, options.trains() ? options.schedule.placement : pipeline::Placement::kInTurns},
      stage_(pipeline.rank),
      chunks_(options.trains() ? options.schedule.virtual_stages : 1),
      first_layer_{0} {
  const auto cells = static_cast<std::size_t>(stages() * chunks_);
  std::vector<std::int64_t> of_each = options.cell_layers;
  if (of_each.empty()) of_each.assign(cells, layers / static_cast<std::int64_t>(cells));
  check_equal(static_cast<std::int64_t>(of_each.size()), static_cast<std::int64_t>(cells), "cells that have layers");
  for (const std::int64_t count : of_each) {
    check(count >= 1, "every cell has a layer");
    first_layer_.push_back(first_layer_.back() + count);
  }
  check_equal(first_layer_.back(), layers, "layers of all cells");
  check(stages() > 1 || chunks_ == 1, "a pipeline of one stage has one cell");
}

int StageCells::stage_of_layer(std::int64_t layer) const {
  const auto after = std::upper_bound(first_layer_.begin(), first_layer_.end(), layer);
  return map_.stage_of(static_cast<int>(after - first_layer_.begin() - 1));
}

}  // namespace teratron
