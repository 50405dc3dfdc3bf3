// What watching a run costs: small training steps, of which every second one is reported in full (a line of the log,
// metrics.jsonl, TensorBoard's records), so that both kinds meet the same machine. Also the time within the reporter.
//
//   chrt -f 10 build/release/bench_telemetry FOLDER [STEPS]     FOLDER: on the disk that is to be written to
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/median.h"
#include "base/monotonic_clock.h"
#include "base/philox.h"
#include "cli/training_reporter.h"
#include "data/indexed_dataset_writer.h"
#include "ops/backend.h"
#include "program.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVocabulary = 1000;

struct Size {
  std::int64_t layers, hidden, tokens;
};

std::shared_ptr<const IndexedDataset> random_corpus(const fs::path& prefix) {
  RandomSequence random(RandomStream{.seed = 1});
  IndexedDatasetWriter writer(prefix, kVocabulary);
  for (int document = 0; document < 100; ++document) {
    std::vector<std::int32_t> tokens(1000);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.below(kVocabulary));
    writer.add_document(tokens);
  }
  writer.commit();
  return std::make_shared<const IndexedDataset>(IndexedDataset::open(prefix.string()));
}

// Seconds from the end of one update to the end of the next, by whether what lies between was reported.
class EverySecond final : public TrainingObserver {
 public:
  explicit EverySecond(TrainingReporter& reporter) : reporter_(reporter) {}

  void iteration(const IterationReport& report) override {
    constexpr std::int64_t kWarmUp = 10;
    const double updated = monotonic_seconds();
    const bool reports = report.iteration % 2 == 0;
    if (reports) reporter_.iteration(report);
    const double now = monotonic_seconds();
    if (report.iteration > kWarmUp) {
      (reports ? with : without).push_back(now - last_);
      if (reports) inside.push_back(now - updated);
    }
    last_ = now;
  }

  std::vector<double> with, without, inside;

 private:
  TrainingReporter& reporter_;
  double last_ = 0;
};

void measure(const Size& size, const fs::path& folder, std::int64_t steps) {
  TrainConfig config;
  config.model.num_layers = size.layers;
  config.model.hidden_size = size.hidden;
  config.model.num_attention_heads = 4;
  config.seq_length = size.tokens;
  config.train_iters = steps;
  config.log_interval = 2;  // a line for each reported step
  config.save = folder / "run";
  config.tensorboard_dir = folder / "tensorboard";
  fs::create_directories(config.save);
  const auto corpus = random_corpus(folder / "corpus");
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Trainer trainer(config, *backend, make_training_task(config, corpus, kVocabulary));
  trainer.start();
  TrainingReporter reporter(config, trainer, 0, 1e11);
  EverySecond observer(reporter);
  trainer.run(observer);
  const double with = median(observer.with), without = median(observer.without), inside = median(observer.inside);
  fmt::print("{:2} layers of {:3}, {:3} tokens  {:9.3f} {:12.3f} {:+9.2f} {:12.1f} {:9.2f}\n", size.layers, size.hidden,
             size.tokens, 1e3 * without, 1e3 * with, 100 * (with / without - 1), 1e6 * inside, 100 * inside / without);
  fs::remove_all(folder);
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 2) throw_user_error("usage: bench_telemetry FOLDER [STEPS]");
  const fs::path folder = fs::path(arguments[1]) / "bench_telemetry";
  const std::int64_t steps = arguments.size() > 2 ? std::atoll(arguments[2]) : 400;
  fmt::print("model                      ms a step  reported, ms    more, %  inside, us  share, %\n");
  for (const Size& size : {Size{2, 64, 64}, Size{3, 128, 128}, Size{4, 256, 256}}) measure(size, folder, steps);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
