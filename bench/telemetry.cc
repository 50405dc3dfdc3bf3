// What watching a run costs: small training steps, in turns of about a quarter of a second. In every second turn each
// step is reported in full (a line of the log, a row of metrics.jsonl, TensorBoard's records), so that both kinds meet
// the same machine. Also the time within the reporter.
//
//   chrt -f 10 build/release/bench_telemetry FOLDER [TURNS]     FOLDER: on the disk that is to be written to
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "base/median.h"
#include "base/philox.h"
#include "data/indexed/indexed_dataset_writer.h"
#include "ops/backend.h"
#include "program.h"
#include "run/observers/observer_list.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVocabulary = 1000;

struct Size {
  std::int64_t layers, hidden, tokens;
  std::int64_t turn;  // steps
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

// Updates in turns of `turn`: those of every second turn are reported in full. Seconds of a turn go from the end of the
// update before it to the end of its last one, with all that is written of it.
class EverySecondTurn final : public TrainingObserver {
 public:
  EverySecondTurn(TrainingObserver& reporter, std::int64_t turn) : reporter_(reporter), turn_(turn) {}

  void iteration(const IterationReport& report) override {
    const double updated = monotonic_seconds();
    const std::int64_t turns = (report.iteration - 1) / turn_;  // that are over; the first warms up
    const bool reports = turns % 2 == 1, ends = report.iteration % turn_ == 0;
    if (reports) {
      reporter_.iteration(report);
      if (ends) reporter_.flush();
    }
    const double now = monotonic_seconds();
    inside_ += now - updated;
    if (!ends) return;
    const auto updates = static_cast<double>(turn_);
    if (turns > 0) (reports ? with : without).push_back((now - last_) / updates);
    if (reports) inside.push_back(inside_ / updates);
    last_ = now;
    inside_ = 0;
  }

  std::vector<double> with, without, inside;  // of each turn, a mean over its updates

 private:
  TrainingObserver& reporter_;
  const std::int64_t turn_;
  double last_ = 0, inside_ = 0;
};

void measure(const Size& size, const fs::path& folder, std::int64_t turns) {
  TrainConfig config;
  config.model.config.num_layers = size.layers;
  config.model.config.hidden_size = size.hidden;
  config.model.config.num_attention_heads = 4;
  config.model.seq_length = size.tokens;
  config.train_iters = turns * size.turn;
  config.output.log_interval = 1;
  config.output.save = folder / "run";
  config.output.tensorboard_dir = folder / "tensorboard";
  fs::create_directories(config.output.save);
  const auto corpus = random_corpus(folder / "corpus");
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Trainer trainer(config, *backend, make_training_task(config, corpus, kVocabulary));
  trainer.start();
  ObserverList reporter;
  const RankBoard board;
  add_run_observers(reporter, config, trainer, 0, 1e11,
                    std::make_shared<MemoryGauge>(board, *backend, /*ranks_here=*/1, /*planned=*/0));
  EverySecondTurn observer(reporter, size.turn);
  trainer.run(observer);
  std::vector<double> more;  // of a turn than of the one before it, which met the same machine
  for (std::size_t i = 1; i < std::min(observer.with.size(), observer.without.size()); ++i) {
    more.push_back(observer.with[i] / observer.without[i - 1] - 1);
  }
  const double with = median(observer.with), without = median(observer.without), inside = median(observer.inside);
  fmt::print("{:2} layers of {:3}, {:3} tokens  {:9.3f} {:12.3f} {:+9.2f} {:12.1f} {:9.2f}\n", size.layers, size.hidden,
             size.tokens, 1e3 * without, 1e3 * with, 100 * median(more), 1e6 * inside, 100 * inside / without);
  fs::remove_all(folder);
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 2) throw_user_error("usage: bench_telemetry FOLDER [TURNS]");
  const fs::path folder = fs::path(arguments[1]) / "bench_telemetry";
  const std::int64_t turns = arguments.size() > 2 ? std::atoll(arguments[2]) : 21;
  fmt::print("model                      ms a step  reported, ms    more, %  inside, us  share, %\n");
  for (const Size& size : {Size{2, 64, 64, 100}, Size{3, 128, 128, 20}, Size{4, 256, 256, 4}}) {
    measure(size, folder, turns);
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
