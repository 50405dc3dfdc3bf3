// Adapter: a trained low-rank matrix beside a frozen weight (LoRA; Hu et al., arXiv 2106.09685):
//   y += scale * B A dropout(x),   A [rank, inputs], B [outputs, rank]
// B starts as zero, so that the first step sees the model as it was. A product that is fused of several has an adapter
// for each part, as PEFT has.
//
// Tensor parallel: beside a column-parallel layer B is cut as the weight is and A is whole; beside a row-parallel one A
// is cut and B is whole, and the ranks' shares of y are summed with those of the layer. A whole one's gradient is a sum
// over the ranks.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "nn/linear_weights.h"

namespace teratron {

struct AdapterConfig {
  // The products of a layer, as bits. kPacked: one adapter for queries, keys and values together.
  enum Target : unsigned {
    kQuery = 1,
    kKey = 2,
    kValue = 4,
    kPacked = 8,
    kOutput = 16,  // of attention
    kGate = 32,
    kUp = 64,
    kDown = 128,
  };
  std::int64_t rank = 0;  // 0: there are none
  double alpha = 8, dropout = 0;
  bool rank_stabilized = false;  // scaled by 1 / sqrt(rank), not 1 / rank (Kalajdzievski, arXiv 2312.03732)
  unsigned targets = 0;

  bool active() const { return rank > 0; }
  double scale() const {
    const auto size = static_cast<double>(rank);
    return alpha / (rank_stabilized ? std::sqrt(size) : size);
  }
  bool operator==(const AdapterConfig&) const = default;
};

// The adapters of one linear layer: which of its equal parts along the outputs have one.
struct LayerAdapters {
  struct Part {
    std::string name;  // "key"; empty: the adapter is of the whole layer
    std::int64_t number = 0, count = 1;
  };
  AdapterConfig config;
  std::vector<Part> parts;

  // Adapters of a layer with these parts, in order.
  static LayerAdapters of(const AdapterConfig& config,
                          const std::vector<std::pair<AdapterConfig::Target, std::string>>& parts) {
    LayerAdapters adapters{.config = config, .parts = {}};
    if (!config.active()) return adapters;
    const auto count = static_cast<std::int64_t>(parts.size());
    if (parts.front().first < AdapterConfig::kPacked && (config.targets & AdapterConfig::kPacked) != 0) {
      adapters.parts.push_back({});
      return adapters;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& [target, name] = parts[static_cast<std::size_t>(i)];
      if ((config.targets & target) != 0) adapters.parts.push_back({count > 1 ? name : "", i, count});
    }
    return adapters;
  }
};

struct Adapter {
  // Adapters take the streams of residual dropout (RandomPurpose) from kFirstStream on, kMostInLayer of them a layer.
  static constexpr std::uint32_t kFirstStream = 1U << 20, kMostInLayer = 8;

  Parameter a, b;             // [rank, inputs here], [outputs of the part here, rank]
  std::int64_t first_output;  // of the layer's outputs here, that the part begins with
  double scale, dropout;
  bool of_all_tokens;                   // LinearWeights::of_all_tokens
  bool follows_activation;              // input_share() also differentiates the activation that made x
  std::uint32_t stream = kFirstStream;  // of its masks

  // Beside a weight of this name, split as it is.
  Adapter(const std::string& layer, const Parameter& weight, const LayerAdapters::Part& part,
          const AdapterConfig& config, GroupRank group, bool of_all_tokens, bool follows_activation);

  std::int64_t inputs() const { return a.shape[1]; }   // here
  std::int64_t outputs() const { return b.shape[0]; }  // of the part, here

  // Bytes of pass.adapters that a call of so many rows takes.
  std::int64_t bytes(const CallSizes& sizes) const {
    Carver carver;
    carve(sizes.rows(), sizes.compute, carver);
    return carver.bytes();
  }

  // Addend of the layer's product y, where it takes low ranks.
  LowRankProduct addend(const LayerPass& pass, TensorRef x) const;
  // Addend of the layer's product dx, where it takes low ranks and drops() is false.
  LowRankProduct input_addend(const LayerPass& pass, TensorRef dy) const;
  bool drops(const LayerPass& pass) const { return pass.training && dropout > 0; }

  // Adds to y and, with a gate, to epilogue.activated, which are linear in it.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const LinearEpilogue& epilogue = {}) const;

  // Share of the layer's dx and, with a gate, of dgate, in memory of the pass. Reads what the epilogue of the layer's
  // own product may overwrite.
  struct InputShare {
    TensorRef dx, dgate;
  };
  InputShare input_share(const LayerPass& pass, TensorRef dy, const LinearInputEpilogue& epilogue = {}) const;

  // Without `alone` it reads the product with dy that input_addend() or input_share() made in the same backward.
  void backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x, bool alone) const;

 private:
  // Alive within one call, but for `gradient`.
  struct Memory {
    TensorRef low;                   // [rows, rank]
    TensorRef scaled;                // [kMostInLayer, rows, rank], one for each adapter of the layer: scale * A x
    TensorRef gradient;              // alike: scale * B^T dy, alive until the end of the layer's backward
    TensorRef part, sum;             // [rows, outputs]
    TensorRef in, activated, dgate;  // [rows, inputs]
  };
  Memory carve(std::int64_t rows, DType compute, Carver& carver) const;
  Memory memory(const LayerPass& pass) const;
  LinearWeights weights(const Parameter& weight) const {
    return {.weight = weight, .bias = nullptr, .of_all_tokens = of_all_tokens};
  }
  bool is_whole(TensorRef y) const { return y.dim(-1) == outputs(); }
  TensorRef part_of(TensorRef y) const { return y.flatten_rows().slice(1, first_output, first_output + outputs()); }
  TensorRef own(TensorRef of_layer) const { return of_layer.select(0, stream % kMostInLayer); }
  // to = dropout(from). An element's mask depends on its index in the whole, unsplit input alone. `to` may be `from`.
  void mask(const LayerPass& pass, TensorRef to, TensorRef from) const;
  // Returns x after dropout, as A reads it.
  TensorRef dropped(const LayerPass& pass, TensorRef x, const Memory& memory) const;
  // Returns scale * A input, in memory.scaled.
  TensorRef reduce(const LayerPass& pass, TensorRef input, const Memory& memory) const;
  // Returns the part's dy.
  TensorRef part_gradient(const LayerPass& pass, TensorRef dy, const Memory& memory) const;
  // Returns scale * B^T dy, in memory.gradient, from the part's dy.
  TensorRef reduce_gradient(const LayerPass& pass, TensorRef part, const Memory& memory) const;
};

}  // namespace teratron
