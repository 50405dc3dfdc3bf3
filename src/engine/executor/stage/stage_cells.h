// StageCells: the cells of a model that one stage of a pipeline holds (pipeline/schedule.h), each a run of layers. The
// first cell begins with the embedding, the last one ends with the head.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/rank_coordinates.h"
#include "executor/options.h"

namespace teratron {

class StageCells {
 public:
  // InternalError where the cells' layers do not add up to the model's.
  StageCells(std::int64_t layers, const ExecutorOptions& options, GroupRank pipeline);

  int stages() const { return map_.stages; }
  int stage() const { return stage_; }
  int chunks() const { return chunks_; }  // cells of this stage
  int stage_of_embedding() const { return map_.stage_of(0); }
  int stage_of_head() const { return map_.stage_of(last_cell()); }
  bool has_embedding() const { return stage_ == stage_of_embedding(); }
  bool has_head() const { return stage_ == stage_of_head(); }

  int cell(int chunk) const { return map_.cell(stage_, chunk); }
  bool is_first(int chunk) const { return cell(chunk) == 0; }
  bool is_last(int chunk) const { return cell(chunk) == last_cell(); }
  int stage_before(int chunk) const { return map_.stage_of(cell(chunk) - 1); }
  int stage_after(int chunk) const { return map_.stage_of(cell(chunk) + 1); }
  // Whether the cell before, or after, is this stage's too: chunk - 1, or chunk + 1. Nothing is sent between them.
  bool continues(int chunk) const { return !is_first(chunk) && stage_before(chunk) == stage_; }
  bool is_continued(int chunk) const { return !is_last(chunk) && stage_after(chunk) == stage_; }

  // The model's number of a chunk's first layer, and how many it has.
  std::int64_t first_layer(int chunk) const { return first_layer_[static_cast<std::size_t>(cell(chunk))]; }
  int layers(int chunk) const {
    return static_cast<int>(first_layer_[static_cast<std::size_t>(cell(chunk)) + 1] - first_layer(chunk));
  }
  int stage_of_layer(std::int64_t layer) const;

 private:
  int last_cell() const { return stages() * chunks_ - 1; }

  pipeline::CellMap map_;
  int stage_, chunks_;
  std::vector<std::int64_t> first_layer_;  // of every cell of the model; then the number of layers
};

}  // namespace teratron
