#include "ops/cuda/linear/fusion.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/algorithms/algorithm_choice.h"
#include "ops/cuda/linear/timing.h"

namespace teratron::cuda {
namespace {

// Name that the cache keeps in place of an algorithm.
std::string_view name_of(Fusion fusion) {
  switch (fusion) {
    case Fusion::kNothing: return "nothing";
    case Fusion::kRounded: return "rounded";
    case Fusion::kBias: return "bias";
    case Fusion::kGelu: return "gelu";
    case Fusion::kGeluGradient: return "gelu gradient";
    case Fusion::kBiasGradient: return "bias gradient";
  }
  throw InternalError("a fusion has a name");
}

AlgorithmBytes bytes_of(Fusion fusion) {
  AlgorithmBytes bytes{};
  std::ranges::transform(name_of(fusion), bytes.begin(), [](char letter) { return static_cast<std::byte>(letter); });
  return bytes;
}

class FusionTrial final : public AlgorithmTrial {
 public:
  FusionTrial(cudaStream_t stream, FusibleOperation& operation) : stream_(stream), operation_(operation) {}

  // The first rehearsal of each also chooses the algorithm of its product.
  std::vector<AlgorithmBytes> candidates() override {
    std::vector<AlgorithmBytes> result;
    for (const Fusion fusion : operation_.fusions()) {
      if (runs(fusion)) result.push_back(bytes_of(fusion));
    }
    if (result.empty()) result.push_back(bytes_of(operation_.fusions().front()));
    return result;
  }

  bool can_use(const AlgorithmBytes& bytes) override {
    const std::optional<Fusion> fusion = fusion_of(bytes);
    return fusion && operation_.can_compute(*fusion);
  }

  std::optional<double> time(const AlgorithmBytes& bytes) override {
    return microseconds_of(stream_, [this, fusion = fusion_of(bytes).value()] { return runs(fusion); });
  }

  std::optional<Fusion> fusion_of(const AlgorithmBytes& bytes) const {
    for (const Fusion fusion : operation_.fusions()) {
      if (bytes_of(fusion) == bytes) return fusion;
    }
    return std::nullopt;
  }

 private:
  bool runs(Fusion fusion) {
    try {
      return operation_.rehearse(fusion);
    } catch (const EnvironmentError&) {
      cudaGetLastError();  // and forget it
      return false;
    }
  }

  cudaStream_t stream_;
  FusibleOperation& operation_;
};

}  // namespace

Fusion choose_fusion(const std::string& key, cudaStream_t stream, FusibleOperation& operation, AlgorithmCache& cache) {
  FusionTrial trial(stream, operation);
  return trial.fusion_of(choose_algorithm(key, trial, cache)).value();
}

}  // namespace teratron::cuda
