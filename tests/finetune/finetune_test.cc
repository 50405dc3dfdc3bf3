// Fine-tuning of small models on synthetic tasks: that it learns them, what layouts and resuming may not change, and
// how medians are chosen.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/temporary_folder.h"
#include "comm/launch.h"
#include "finetune/finetune_task.h"
#include "finetune/outputs.h"
#include "finetune/task_head.h"
#include "tasks/synthetic_tasks.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

class Observer final : public TrainingObserver {
 public:
  void iteration(const IterationReport& report) override { reports.push_back(report); }
  void scored(std::int64_t, std::span<const TaskScore> scores) override { values.push_back(scores.front().value); }
  std::vector<IterationReport> reports;
  std::vector<double> values;
};

class Finetuning : public ::testing::TestWithParam<TaskKind> {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "words");
    put_file(folder_ / "words/vocab.txt", task_vocabulary());
    put_file(folder_ / "train.jsonl", task_file(GetParam(), 24, 7));  // the name counts for RACE
    put_file(folder_ / "valid.jsonl", task_file(GetParam(), 13, 8));
    config_.task = GetParam();
    config_.run.model.config.set_kind(ModelKind::kBert);
    config_.run.model.config.num_layers = 2;
    config_.run.model.config.hidden_size = 24;
    config_.run.model.config.num_attention_heads = 3;
    config_.run.model.config.hidden_dropout = config_.run.model.config.attention_dropout = 0;
    config_.run.model.tokenizer = folder_ / "words";
    config_.run.model.seq_length = config_.reading.given.seq_length = 24;
    config_.reading.given = with_columns_of(GetParam(), config_.reading.reading_for(GetParam(), 24));
    config_.run.batch.micro_batch_size = 3;
    config_.run.batch.global_batch_size = 6;
    config_.epochs = 2;
    config_.run.optimizer.learning_rate.peak = 5e-3;
    config_.run.output.save = folder_ / "run";
    config_.reading.given.labels.names = synthetic_labels(GetParam());
    config_.reading.given.labels.are_numbers = GetParam() == TaskKind::kEmbed;
    set_task_head(config_.run.model.config, GetParam(), config_.reading.given);
    config_.run.model.config = config_.run.model.model_for(config_.run.model.vocabulary_size());
  }

  std::unique_ptr<TaskSet> open(const char* file, bool training) const {
    const std::vector<fs::path> files = {folder_ / fmt::format("{}.jsonl", file)};
    return open_task(GetParam(), files, Tokenizer::load(config_.run.model.tokenizer), config_.reading.given, training);
  }

  // Events of rank 0. `body` runs after the run, on every rank.
  using Body = std::function<void(Trainer&, const TaskSet& training)>;
  TrainingRun train(const TrainConfig& config, std::vector<double>* scores = nullptr, const Body& body = {}) {
    const auto training = open("train", true), validation = open("valid", false);
    TrainingRun run;
    WholeWeights weights;
    run_ranks({}, config.layout.mesh().ranks(), [&](Communicator& world) {
      const auto backend = make_cpu_backend({.compute_dtype = config.backend.compute_dtype()});
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, config.layout.mesh()));
      Trainer trainer(config, *backend,
                      make_finetune_task(config, GetParam(), *training, *validation, mesh->coordinates().tensor), mesh);
      trainer.start();
      Observer observer;
      const TrainingResult result = trainer.run(observer);
      weights.add(trainer.executor());
      if (body) body(trainer, *training);
      if (world.rank() != 0) return;
      run = {.reports = observer.reports, .result = result};
      for (const IterationReport& report : run.reports) run.losses.push_back(report.loss);
      if (scores != nullptr) *scores = observer.values;
    });
    run.parameters = weights.values();
    return run;
  }
  TrainConfig run_config() const {
    const auto training = open("train", true);
    return train_config(config_, training->examples(), 0);
  }

  TemporaryFolder folder_;
  FinetuneConfig config_;
};

TEST_P(Finetuning, LayoutsChangeNothing) {
  config_.run.model.config.hidden_dropout = config_.run.model.config.attention_dropout = 0.1;
  // The gradients of the keys' biases and of the spans' are 0 but for rounding, which AdamW would make steps of.
  config_.run.optimizer.adamw.epsilon = 1e-4;
  TrainConfig plain = run_config();
  plain.output.save.clear();
  plain.output.save_best = false;
  std::vector<double> scores, other_scores;
  const TrainingRun alone = train(plain, &scores);
  ASSERT_EQ(scores.size(), 2U);
  TrainConfig other = plain;
  other.layout.tensor_parallel = 3;
  expect_same_training(train(other, &other_scores), alone, "tp 3");
  EXPECT_EQ(other_scores, scores);
  other = plain;
  other.layout.pipeline_parallel = 2;
  other.layout.data_parallel = 2;
  other.layout.distributed_optimizer = true;
  other.batch.micro_batch_size = plain.batch.micro_batch_size / 3;
  expect_same_training(train(other, &other_scores), alone, "pp 2, dp 2, sharded, single examples");
  EXPECT_EQ(other_scores, scores);
}

// Also where the data do not fill a batch, where copies have shares of different sizes, and where some have none.
TEST_P(Finetuning, CopiesOfTheModelReadTheSameExamples) {
  config_.run.model.config.hidden_dropout = config_.run.model.config.attention_dropout = 0.1;
  config_.run.optimizer.adamw.epsilon = 1e-4;  // as in LayoutsChangeNothing
  config_.epochs = 1;
  struct Case {
    int examples;
    std::int64_t batch, micro_batch, copies;
  };
  for (const Case& one :
       {Case{5, 6, 3, 3}, {5, 6, 1, 2}, {2, 6, 4, 3}, {1, 4, 2, 2}, {7, 4, 3, 3}, {8, 5, 2, 5}, {4, 64, 9, 4}}) {
    const std::string what = fmt::format("{} examples in batches of {}, micro-batches of {}, dp {}", one.examples,
                                         one.batch, one.micro_batch, one.copies);
    put_file(folder_ / "train.jsonl", task_file(GetParam(), one.examples, 7));
    config_.run.batch.global_batch_size = one.batch;
    config_.run.batch.micro_batch_size = one.micro_batch;
    std::vector<TrainingRun> runs;
    for (const std::int64_t copies : {std::int64_t{1}, one.copies}) {
      config_.run.layout.data_parallel = copies;
      ASSERT_TRUE(config_.faults().empty()) << what;
      TrainConfig run = run_config();
      run.output.save.clear();
      run.output.save_best = false;
      const std::int64_t each = open("train", true)->examples().sequences_each;
      const std::int64_t examples = open("train", true)->examples().count();
      EXPECT_EQ(run.batch.global_batch_size, std::min(one.batch, examples) * each) << what;
      runs.push_back(train(run));
      EXPECT_EQ(runs.back().reports.front().consumed_samples, run.batch.global_batch_size) << what;
      EXPECT_EQ(runs.back().reports.front().tokens, runs.front().reports.front().tokens) << what;
    }
    expect_same_training(runs.back(), runs.front(), what);
  }
}

TEST_P(Finetuning, LearnsItsExamples) {
  config_.epochs = 160;  // of a small model at a high rate, whose way there differs with every rounding
  TrainConfig run = run_config();
  run.output.save.clear();
  run.output.save_best = false;
  run.output.eval_interval = 0;
  TaskOutputValues outputs;
  train(run, nullptr, [&](Trainer& trainer, const TaskSet& training) {
    outputs = outputs_of(trainer.executor(), static_cast<const Bert&>(*trainer.task().model), training.examples());
  });
  const auto training = open("train", true);
  EXPECT_GT(training->scores(outputs).front().value, 95);
}

TEST_P(Finetuning, GoesOnBitForBitAndKeepsTheBest) {
  std::vector<double> scores, rest;
  config_.epochs = 4;
  TrainConfig run = run_config();
  const TrainingRun whole = train(run, &scores);
  ASSERT_EQ(scores.size(), 4U);
  const CheckpointInfo best = read_checkpoint_info(run.output.save / "best");
  const auto highest = std::ranges::max_element(scores) - scores.begin();
  EXPECT_EQ(best.state.iteration, (highest + 1) * run.output.eval_interval);
  EXPECT_EQ(best.model.head, config_.run.model.config.head);
  fs::remove_all(run.output.save);
  // A run that ends in the middle of an epoch, by a signal.
  class Ends final : public TrainingObserver {
   public:
    void iteration(const IterationReport& report) override { iteration_ = report.iteration; }
    std::int64_t iteration_ = 0;
  } ends;
  const auto training = open("train", true), validation = open("valid", false);
  {
    const auto backend = make_cpu_backend({});
    Trainer trainer(run, *backend, make_finetune_task(run, GetParam(), *training, *validation));
    trainer.start();
    RunControl control;
    control.signal = [&] { return ends.iteration_ == run.output.eval_interval + 1 ? 15 : 0; };
    EXPECT_EQ(trainer.run(ends, control).end, RunEnd::kSignal);
  }
  run = run_config();
  EXPECT_EQ(run.output.load, run.output.save);
  const TrainingRun resumed = train(run, &rest);
  EXPECT_EQ(resumed.parameters, whole.parameters);
  EXPECT_EQ(rest.back(), scores.back());
  EXPECT_EQ(read_checkpoint_info(run.output.save / "best").state.iteration, best.state.iteration);
}

// Defaults may change between versions; the run keeps what it began with.
TEST_P(Finetuning, ARunThatGoesOnKeepsItsWeightDecayUnlessItIsGiven) {
  config_.epochs = 1;
  config_.run.optimizer.adamw.weight_decay = 0.03;
  config_.weight_decay_given = true;
  train(run_config());
  config_.run.optimizer.adamw.weight_decay = 0.1;
  config_.weight_decay_given = false;
  EXPECT_EQ(run_config().optimizer.adamw.weight_decay, 0.03);
  config_.weight_decay_given = true;
  EXPECT_EQ(run_config().optimizer.adamw.weight_decay, 0.1);
}

// Outputs do not depend on what they are computed with.
TEST_P(Finetuning, OutputsAreTheSameInEveryBatch) {
  const auto set = open("valid", false);
  const auto outputs = [&](std::int64_t batch, int data_parallel) {
    TaskOutputValues values;
    run_ranks({}, data_parallel, [&](Communicator& world) {
      const auto backend = make_cpu_backend({});
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, {.data = data_parallel}));
      Bert model(config_.run.model.config);
      Executor executor(*backend, model,
                        {.purpose = Purpose::kEvaluation,
                         .batch = batch * set->examples().sequences_each,
                         .tokens = config_.run.model.seq_length,
                         .logits_chunk = 1},
                        mesh);
      executor.allocate();
      executor.initialize(3);
      TaskOutputValues here = outputs_of(executor, model, set->examples());
      if (world.rank() == data_parallel - 1) values = std::move(here);
    });
    return values;
  };
  const TaskOutputValues alone = outputs(1, 1);
  ASSERT_EQ(alone.size(), static_cast<std::size_t>(set->examples().count()));
  for (const auto& [batch, copies] : {std::pair{4, 1}, std::pair{13, 1}, std::pair{3, 2}, std::pair{5, 3}}) {
    const TaskOutputValues together = outputs(batch, copies);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(together[i].size(), alone[i].size());
      // Products of other numbers of rows may be summed in another order.
      for (std::size_t k = 0; k < alone[i].size(); ++k) EXPECT_NEAR(together[i][k], alone[i][k], 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, Finetuning, ::testing::ValuesIn(all_tasks().begin(), all_tasks().end()),
                         [](const auto& task) { return std::string(name_of(task.param)); });

TEST(PaperHyperParameters, AreTableSixOfTheNearestModel) {
  const auto of = [](TaskKind task, double size) { return paper_hyper_parameters(task, std::llround(size)); };
  EXPECT_EQ(of(TaskKind::kMnli, 336e6), (TaskHyperParameters{128, 1e-5, 10}));
  EXPECT_EQ(of(TaskKind::kQqp, 1.3e9), (TaskHyperParameters{128, 3e-5, 12}));
  EXPECT_EQ(of(TaskKind::kQqp, 3.9e9), (TaskHyperParameters{256, 4e-5, 12}));
  EXPECT_EQ(of(TaskKind::kSquad1, 1e6), (TaskHyperParameters{64, 3e-5, 2}));
  EXPECT_EQ(of(TaskKind::kSquad2, 2e9), (TaskHyperParameters{64, 3e-5, 2}));
  EXPECT_EQ(of(TaskKind::kSquad2, 1e12), (TaskHyperParameters{48, 1e-5, 2}));
  EXPECT_EQ(of(TaskKind::kRace, 1e9), (TaskHyperParameters{16, 1e-5, 3}));
}

}  // namespace
}  // namespace teratron::testing
