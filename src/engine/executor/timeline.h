// Timeline of a step of one stage, for the planner of memory: every action has a moment for each layer of its cell, in
// the order of the pass, one before them (embedding, head, receives) and one after. Joint passes have one moment.
#pragma once

#include <vector>

#include "executor/stage/stage_cells.h"
#include "pipeline/schedule.h"

namespace teratron {

// A slice of a micro-batch in one of the stage's cells.
struct SliceKey {
  int chunk = 0, micro_batch = 0, slice = 0;
};

class Timeline {
 public:
  // The stage's actions; micro-batches and slices count from 0. slices: of each micro-batch.
  Timeline(const std::vector<pipeline::Action>& actions, const StageCells& cells, std::vector<int> slices);

  // The moments of one slice's way through a cell of `layers` layers.
  struct Passes {
    int layers = 0;
    // The earliest at which its input may arrive: while the action before its forward runs, in any step with this
    // micro-batch (pipeline::first_micro_batches).
    int received = -1;
    int forward = -1, backward = -1, weight = -1;  // the first of each pass; -1: there is none. Weight: if apart
    // The model's ends, in passes of their own or in those of the cell.
    int embedding = -1, head = -1, embedding_backward = -1;

    int forward_of(int layer) const { return forward + 1 + layer; }
    int forward_end() const { return forward + 1 + layers; }
    int backward_of(int layer) const { return backward + layers - layer; }
    int backward_end() const { return backward + 1 + layers; }
    bool is_deferred() const { return weight >= 0; }
    // After which nothing of a layer's activations is needed.
    int last_of(int layer) const {
      if (backward < 0) return forward_of(layer);
      return is_deferred() ? weight + layers - layer : backward_of(layer);
    }
  };
  const Passes& of(const SliceKey& key) const { return passes_[index(key)]; }

  int end() const { return end_; }  // after all of them: the optimizer's
  int chunks() const { return chunks_; }
  int micro_batches() const { return static_cast<int>(slices_.size()); }
  int slices_of(int micro_batch) const { return slices_[static_cast<std::size_t>(micro_batch)]; }
  int most_slices() const { return most_slices_; }
  std::size_t indices() const { return passes_.size(); }

  // Calls use(key) for every slice of every micro-batch in every chunk.
  template <class Use>
  void for_each(const Use& use) const {
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      for (int micro_batch = 0; micro_batch < micro_batches(); ++micro_batch) {
        for (int slice = 0; slice < slices_of(micro_batch); ++slice) use(SliceKey{chunk, micro_batch, slice});
      }
    }
  }
  std::size_t index(const SliceKey& key) const {
    return static_cast<std::size_t>((key.chunk * micro_batches() + key.micro_batch) * most_slices_ + key.slice);
  }

 private:
  int chunks_;
  std::vector<int> slices_;  // by micro-batch
  int most_slices_, end_ = 0;
  std::vector<Passes> passes_;
};

// A run of moments that grows to hold others.
struct Span {
  int first = 1 << 30, last = -1;
  void include(int from, int to) {
    if (from < first) first = from;
    if (to > last) last = to;
  }
  bool is_empty() const { return last < first; }
};

}  // namespace teratron
