// The layers' passes of a training step as graphs of the back end (Backend::replay): each is captured once for every
// address that its activations may have. From then on it is one launch instead of one for each kernel. Token slices
// need this most: a layer's kernels on 128 tokens take a GPU no longer than the host takes to launch them.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>

#include "executor/timeline.h"
#include "nn/layer_pass.h"

namespace teratron {

// A slice's pass through a cell, with the key of its activations.
struct SliceCall {
  LayerPass pass;
  SliceKey key;
};

class PassGraphs {
 public:
  enum class Kind { kForward, kBackward, kWeightGradients };

  static constexpr std::size_t kMost = 4096;  // beyond that, passes are launched kernel by kernel

  explicit PassGraphs(Backend& backend) : backend_(backend) {}

  // Whether passes of training are captured: layers that ranks split exchange values, which a graph cannot hold.
  // Dropout must then count from memory (LayerPass::counters).
  bool capture(const Communicator& tensor) const { return backend_.captures_graphs() && tensor.size() == 1; }

  // Runs `work`, the pass of a layer (counted in its cell) over a slice. `stream` is the residual stream or its
  // gradient where the pass leaves it; null if it leaves none. Without LayerPass::counters the work is never captured.
  void run(Kind kind, const SliceCall& call, int layer, const TensorRef& stream, const std::function<void()>& work);

 private:
  // Values that may differ between two captures of one kind of pass.
  struct Key {
    Kind kind;
    int chunk, micro_batch, slice, layer;
    std::int64_t batch, tokens, sequence_length;
    std::uint64_t seed;
    bool accumulate, weights_later;
    const void *stream, *key_lengths, *first_keys, *position_ids;
    auto operator<=>(const Key&) const = default;
  };

  Backend& backend_;
  std::map<Key, std::unique_ptr<Backend::Graph>> graphs_;
};

}  // namespace teratron
