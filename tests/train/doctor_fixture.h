// Runs with --trace-numerics that go on from a trained model, and faults in them. Nothing of the program knows of it.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "base/philox.h"
#include "train/training_fixture.h"

namespace teratron::testing {

constexpr std::int64_t kTrained = 150;  // updates before any fault

// Damage to a rank after an update.
using Meddle = std::function<void(std::int64_t iteration)>;

class MeddlingObserver final : public TrainingObserver {
 public:
  explicit MeddlingObserver(Meddle meddle) : meddle_(std::move(meddle)) {}

  void iteration(const IterationReport& report) override {
    reports.push_back(report);
    if (meddle_) meddle_(report.iteration);
  }
  void notice(const std::string& text) override { notices += text + "\n"; }

  std::vector<IterationReport> reports;
  std::string notices;

 private:
  Meddle meddle_;
};

// The highest bit of an exponent, in the last bytes of values of this type.
inline void flip_exponent(Backend& backend, TensorRef values, std::uint64_t element) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(values.bytes()));
  backend.download(bytes.data(), values);
  const auto size = static_cast<std::size_t>(size_of(values.dtype));
  bytes[(element % (bytes.size() / size) + 1) * size - 1] ^= std::byte{0x40};
  backend.upload(values, bytes.data());
}

// Writes a NaN to what an operation of a layer has left, whenever a chosen update is computed.
class BreakingOperation final : public CallObserver {
 public:
  enum class Operation { kProjections, kAttention, kActivation, kDown };
  struct Place {
    Operation operation = Operation::kAttention;
    std::int64_t iteration = 0;
    int index = 0;         // of the layer in its stage
    bool persists = true;  // else once
  };
  BreakingOperation(Trainer& trainer, const Place& place) : trainer_(trainer), place_(place) {}

  void begin(std::string_view operation) override {
    if (operation != "attention_forward") return;
    layer_ = (layer_ + 1) % trainer_.executor().plan().cells().layers(0);
    products_ = 0;
    if (place_.operation == Operation::kProjections) break_if_here();
  }
  void end(std::string_view operation) override {
    if (operation == "attention_forward" && place_.operation == Operation::kAttention) break_if_here();
    if (operation != "linear_forward") return;
    ++products_;  // the projection of attention, up, down
    if (products_ == 2 && place_.operation == Operation::kActivation) break_if_here();
    if (products_ == 3 && place_.operation == Operation::kDown) break_if_here();
  }
  int done() const { return done_; }

 private:
  void break_if_here() {
    if (trainer_.iteration() + 1 != place_.iteration || layer_ != place_.index) return;
    if (!place_.persists && done_ > 0) return;
    ++done_;
    std::fill_n(static_cast<float*>(memory().data), 8,
                std::numeric_limits<float>::quiet_NaN());  // dropout may drop one
  }
  // The first sequence's, whatever the micro-batch.
  TensorRef memory() const {
    Executor& executor = trainer_.executor();
    const StageMemory& memory = executor.plan().memory();
    const std::int64_t tokens = executor.options().tokens;
    const LayerPass pass{.backend = executor.backend(),
                         .tensor = *executor.mesh().tensor,
                         .batch = executor.options().batch,
                         .tokens = tokens,
                         .sequence_length = tokens};
    const TransformerLayer::Saved saved = memory.saved(pass, {}, place_.index, false);
    switch (place_.operation) {
      case Operation::kProjections: return saved.attention.qkv;
      case Operation::kAttention: return saved.attention.context;
      case Operation::kActivation: return memory.workspace(pass).wide;
      case Operation::kDown: return memory.workspace(pass).branch;
    }
    return {};
  }

  Trainer& trainer_;
  const Place place_;
  int layer_ = -1, products_ = 3, done_ = 0;
};

enum class End { kGood, kDiverged, kMachine };

struct DoctoredRun {
  End end = End::kGood;
  std::string error, notices;  // of the first rank
  std::vector<IterationReport> reports;
  std::vector<double> parameters;
};

class DoctorFixture : public TrainingFixture {
 protected:
  // Damage to a rank's trainer, after its start.
  using Prepare = std::function<Meddle(Trainer&, Communicator& world)>;

  void SetUp() override {
    TrainingFixture::SetUp();
    write_corpus("sure", 0);
    write_corpus("spoilt", 150);
    config_.data_path = {(folder_ / "sure").string()};
    config_.split.weights = "1";
    config_.model.config.num_layers = 4;
    config_.model.config.num_attention_heads = 4;
    config_.batch.global_batch_size = 8;
    config_.optimizer.learning_rate.style = DecayStyle::kConstant;
    config_.output.trace_numerics = true;
    config_.output.save = folder_ / "trained";
    config_.train_iters = kTrained;
  }

  // Tokens that follow from those before, in 40 documents; then one of so many random tokens.
  void write_corpus(const std::string& name, std::size_t garbage) {
    IndexedDatasetWriter writer(folder_ / name, kVocab);
    std::mt19937 random(2);
    for (int document = 0; document < 40; ++document) {
      std::vector<std::int32_t> tokens(60, static_cast<std::int32_t>(random() % kVocab));
      for (std::size_t i = 1; i < tokens.size(); ++i)
        tokens[i] = static_cast<std::int32_t>((tokens[i - 1] * 7 + 3) % kVocab);
      writer.add_document(tokens);
    }
    std::vector<std::int32_t> last(garbage);
    for (std::int32_t& token : last) token = static_cast<std::int32_t>(random() % kVocab);
    if (garbage > 0) writer.add_document(last);
    writer.commit();
  }

  // A run that goes on from a trained one, in any layout. Its checkpoint is made once.
  TrainConfig going_on(TrainConfig config) {
    if (!std::filesystem::exists(config_.output.save)) train(config_);
    config.output.load = config_.output.save;
    config.output.save = folder_ / fmt::format("run-{}", ++runs_);
    config.train_iters = kTrained + 6;
    return config;
  }

  DoctoredRun outcome_of(const TrainConfig& config, const Prepare& prepare = {}) {
    DoctoredRun outcome;
    WholeWeights parameters;
    try {
      on_ranks(config, [&](Trainer& trainer, Communicator& world) {
        trainer.start();
        MeddlingObserver observer(prepare ? prepare(trainer, world) : Meddle());
        try {
          trainer.run(observer);
        } catch (...) {
          trainer.executor().backend().set_observer(nullptr);
          if (world.rank() == 0) outcome.notices = observer.notices;
          throw;
        }
        trainer.executor().backend().set_observer(nullptr);
        parameters.add(trainer.executor());
        if (world.rank() != 0) return;
        outcome.notices = observer.notices;
        outcome.reports = observer.reports;
      });
      outcome.parameters = parameters.values();
    } catch (const DivergedError& error) {
      outcome.end = End::kDiverged;
      outcome.error = error.what();
    } catch (const EnvironmentError& error) {
      outcome.end = End::kMachine;
      outcome.error = error.what();
    }
    return outcome;
  }

  // tp, pp and dp of at most 2 each, sliced or not.
  TrainConfig random_layout(RandomSequence& random) {
    TrainConfig config = config_;
    config.layout.tensor_parallel = 1 + static_cast<std::int64_t>(random.below(2));
    config.layout.pipeline_parallel = 1 + static_cast<std::int64_t>(random.below(2));
    config.layout.data_parallel = 1 + static_cast<std::int64_t>(random.below(2));
    config.layout.distributed_optimizer = random.below(2) == 0;
    config.layout.recompute = name_of(static_cast<Recompute>(random.below(3)));
    return config;
  }

  std::int64_t runs_ = 0;
};

}  // namespace teratron::testing
