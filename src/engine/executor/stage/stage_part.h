// StagePart: the cells of a model that one stage of a pipeline holds (pipeline/schedule.h), each a run of layers. The
// first cell begins with the embedding, the last one ends with the head.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/rank_coordinates.h"
#include "executor/options.h"

namespace teratron {

class StagePart {
 public:
  // InternalError where the cells' layers do not add up to the model's.
  StagePart(std::int64_t layers, const ExecutorOptions& options, GroupRank pipeline);

  int stages() const { return stages_; }
  int stage() const { return stage_; }
  int chunks() const { return chunks_; }  // cells of this stage
  bool has_embedding() const { return stage_ == 0; }
  bool has_head() const { return stage_ + 1 == stages_; }

  int cell(int chunk) const { return chunk * stages_ + stage_; }
  bool is_first(int chunk) const { return cell(chunk) == 0; }
  bool is_last(int chunk) const { return cell(chunk) + 1 == stages_ * chunks_; }
  int stage_before(int chunk) const { return (cell(chunk) - 1) % stages_; }
  int stage_after(int chunk) const { return (cell(chunk) + 1) % stages_; }

  // The model's number of a chunk's first layer, and how many it has.
  std::int64_t first_layer(int chunk) const { return first_layer_[static_cast<std::size_t>(cell(chunk))]; }
  int layers(int chunk) const {
    return static_cast<int>(first_layer_[static_cast<std::size_t>(cell(chunk)) + 1] - first_layer(chunk));
  }
  int stage_of_layer(std::int64_t layer) const;

 private:
  int stages_, stage_, chunks_;
  std::vector<std::int64_t> first_layer_;  // of every cell of the model; then the number of layers
};

}  // namespace teratron
