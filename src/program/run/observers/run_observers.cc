#include "run/observers/run_observers.h"

#include <memory>

#include "run/observers/metrics_observer.h"
#include "run/observers/progress_observer.h"
#include "run/observers/tensorboard_observer.h"

namespace teratron {

void add_run_observers(ObserverList& list, const TrainConfig& config, const Trainer& trainer, std::int64_t done,
                       double peak_flops) {
  const RunScale scale = scale_of(config, trainer, peak_flops);
  const bool keeps_validation = trainer.validates_after(done);  // a run that ended there validated because it ended
  auto progress = std::make_unique<ProgressObserver>(config, scale);
  const auto tell = [&shown = *progress](const std::string& text) { shown.notice(text); };
  list.add(std::move(progress));
  if (!config.output.save.empty()) {
    list.add(std::make_unique<MetricsObserver>(config, scale, done, keeps_validation, tell));
  }
  if (writes_tensorboard(config)) {
    list.add(std::make_unique<TensorBoardObserver>(config, scale, done, keeps_validation, tell));
  }
}

}  // namespace teratron
