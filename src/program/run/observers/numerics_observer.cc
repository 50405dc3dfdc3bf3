#include "run/observers/numerics_observer.h"

#include <memory>
#include <utility>

namespace teratron {

NumericsObserver::NumericsObserver(const TrainConfig& config, std::int64_t start,
                                   std::function<void(const std::string&)> report) {
  const auto open = [file = config.output.save / "numerics.jsonl", start] {
    return std::make_unique<MetricsLog>(file, start);
  };
  log_.emplace(open, std::move(report));
}

void NumericsObserver::iteration(const IterationReport& report) {
  log_->write([&](MetricsLog& log) {
    for (const LayerNumerics& layer : report.layers) {
      log.write(report.iteration, {{"layer", layer.layer},
                                   {"output_rms", layer.output.rms},
                                   {"output_largest", layer.output.largest},
                                   {"gradient_rms", layer.gradient.rms},
                                   {"gradient_largest", layer.gradient.largest},
                                   {"weights_rms", layer.weights.rms},
                                   {"weights_largest", layer.weights.largest}});
    }
  });
}

}  // namespace teratron
