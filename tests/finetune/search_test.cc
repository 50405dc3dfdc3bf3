// The points of `finetune --search`, and what of the recipe follows from the task.
#include "finetune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

class Search : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomically(folder_.path() / "vocab.txt", task_vocabulary());
    for (const TaskKind task : all_tasks()) {  // labels of some are read
      write_file_atomically(examples(name_of(task)), task_file(task, 8, 1));
    }
  }
  std::filesystem::path examples(std::string_view task) const { return folder_.path() / fmt::format("{}.jsonl", task); }
  FinetuneConfig read(const std::string& task, const Arguments& more = {}) const {
    Arguments arguments = {"--task",       task,
                           "--model",      "bert-tiny",
                           "--tokenizer",  folder_.path().string(),
                           "--train-data", examples(task).string(),
                           "--valid-data", "b",
                           "--save",       "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return read_finetune_config(arguments);
  }
  std::string refusal(const Arguments& more) const {
    return message_of<UserError>([&] { read("mnli", more); });
  }
  const TemporaryFolder folder_;
};

TEST_F(Search, PointsAreThoseOfRobertaOrBertAndTableSix) {
  for (const TaskKind task : all_tasks()) {
    const bool is_glue = task == TaskKind::kMnli || task == TaskKind::kQqp;
    const FinetuneConfig config = read(std::string(name_of(task)), {"--search"});
    std::vector<SearchPoint> expected;
    for (const std::int64_t batch : {16, 32}) {
      for (const double rate : is_glue ? std::vector{1e-5, 2e-5, 3e-5} : std::vector{2e-5, 3e-5, 5e-5}) {
        expected.push_back({batch, rate});
      }
    }
    const TaskHyperParameters paper = paper_hyper_parameters(task, 1'000'000);
    const SearchPoint of_paper{paper.batch, paper.learning_rate};
    if (std::ranges::find(expected, of_paper) == expected.end()) expected.push_back(of_paper);
    EXPECT_EQ(config.points, expected) << name_of(task);
    EXPECT_EQ(config.seeds, 5);
    EXPECT_EQ(config.epochs, paper.epochs);
  }
  EXPECT_EQ(read("mnli").seeds, 1);
  EXPECT_TRUE(read("mnli").points.empty());
  EXPECT_EQ(read("mnli", {"--search", "--seeds", "2"}).seeds, 2);
}

TEST_F(Search, FlagsNameOtherPoints) {
  EXPECT_THAT(read("mnli", {"--search", "--search-batch-sizes", "8", "--search-lrs", "1e-4", "1e-3", "1e-4"}).points,
              ElementsAre(SearchPoint{8, 1e-4}, SearchPoint{8, 1e-3}));
  EXPECT_EQ(read("race", {"--search", "--search-batch-sizes", "8"}).points.size(), 3U);
  EXPECT_THAT(read("race", {"--search", "--lr", "1e-4"}).points,
              ElementsAre(SearchPoint{16, 1e-4}, SearchPoint{32, 1e-4}));
  EXPECT_THAT(read("race", {"--search", "--lr", "1e-4", "--global-batch-size", "4"}).points,
              ElementsAre(SearchPoint{4, 1e-4}));
  EXPECT_EQ(read("race", {"--search", "--lr", "1e-4", "--search-lrs", "1e-5"}).points.front().learning_rate, 1e-5);
  const std::vector<SearchPoint> usual = read("race", {"--search"}).points;
  EXPECT_EQ(read("race", {"--search", "--search-lrs", "", "--search-batch-sizes", ""}).points, usual)
      << "none are given";
}

TEST_F(Search, PairsOfAPointsUpdateAreOneAnothersNegativesUnlessAMicroBatchIsGiven) {
  write_file_atomically(examples("embed"), "{\"text\": \"a\", \"pair\": \"b\"}\n");  // no similarity to learn
  const FinetuneConfig config = read("embed", {"--search", "--search-batch-sizes", "64"});
  EXPECT_EQ(at_point(config, config.points.front()).run.batch.micro_batch_size, 64);
  const FinetuneConfig given = read("embed", {"--search", "--search-batch-sizes", "64", "--micro-batch-size", "8"});
  EXPECT_EQ(at_point(given, given.points.front()).run.batch.micro_batch_size, 8);
}

TEST_F(Search, ExamplesWhoseLabelsAreReadFirstAreAFile) {
  EXPECT_THAT(message_of<UserError>([&] {
                read("classify", {"--train-data", "-"});
              }),
              HasSubstr("--train-data - is a pipe, and is read twice"));
}

TEST_F(Search, ABatchThatTheExamplesDoNotFillIsOneOfAllOfThem) {
  const FinetuneConfig config = read("mnli", {"--search"});
  EXPECT_EQ(search_points(config, 1000), config.points);
  EXPECT_THAT(search_points(config, 10),
              ElementsAre(SearchPoint{10, 1e-5}, SearchPoint{10, 2e-5}, SearchPoint{10, 3e-5}));
  EXPECT_EQ(search_points(config, 100).back(), (SearchPoint{100, 1e-5}));  // Table 6 has 128
}

TEST_F(Search, EveryRunOfAPointHasFilesOfItsOwn) {
  const FinetuneConfig config = read("mnli", {"--search", "--trace", "t/trace.json", "--tensorboard-dir", "board"});
  const OutputSettings of_point = at_point(config, {16, 1e-4}).run.output;
  EXPECT_EQ(of_point.save, "run/batch-16-lr-0.0001");
  EXPECT_EQ(of_point.tensorboard_dir, "board/batch-16-lr-0.0001");
  EXPECT_EQ(of_point.trace, "t/trace-batch-16-lr-0.0001.json");
  const std::string most = "9223372036854775807", less = "9223372036854775806";
  EXPECT_EQ(read("mnli", {"--seed", most}).run.seed, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read("mnli", {"--seed", less, "--seeds", "2"}).seeds, 2);
  EXPECT_THAT(refusal({"--seed", most, "--seeds", "2"}), HasSubstr("--seed is " + most + "; 2 seeds"));
  EXPECT_THAT(refusal({"--search", "--trace", "-"}), HasSubstr("--trace - is one output"));
}

TEST_F(Search, PointsAreCheckedBeforeAnythingStarts) {
  EXPECT_THAT(refusal({"--search-lrs", "1e-4"}), HasSubstr("are points of --search, which is not given"));
  EXPECT_THAT(refusal({"--search", "--search-lrs", "0"}),
              HasSubstr("--search-lrs has 0; learning rates must be above 0"));
  EXPECT_THAT(refusal({"--search", "--search-lrs", "1e-4", "--min-lr", "1e-3", "--lr", "1e-2"}),
              HasSubstr("below --min-lr 0.001"));
  EXPECT_THAT(refusal({"--search", "--search-batch-sizes", "0"}), HasSubstr("--search-batch-sizes has 0"));
  EXPECT_THAT(refusal({"--search", "--search-batch-sizes", "1", "--dp", "2"}),
              HasSubstr("for each of the model's copies (--data-parallel-size 2)"));
  EXPECT_EQ(refusal({"--search", "--search-batch-sizes", "2", "--dp", "2"}), kNoError);
}

TEST_F(Search, TheHighestScoreIsChosenAndOfEqualOnesTheFirst) {
  EXPECT_EQ(best_of(std::vector{1.0, 3.0, 2.0, 3.0}), 1U);
  EXPECT_EQ(best_of(std::vector{-1.0}), 0U);
}

// RoBERTa's Table 10 (arXiv 1907.11692); of classify BERT's (arXiv 1810.04805, appendix A.2).
TEST_F(Search, WeightDecayIsThatOfRobertasFineTuningUnlessGiven) {
  for (const TaskKind task : all_tasks()) {
    const bool is_glue_or_race = task == TaskKind::kMnli || task == TaskKind::kQqp || task == TaskKind::kRace;
    const std::string name(name_of(task));
    EXPECT_EQ(read(name).run.optimizer.adamw.weight_decay, is_glue_or_race ? 0.1 : 0.01) << name;
    EXPECT_EQ(read(name, {"--weight-decay", "0"}).run.optimizer.adamw.weight_decay, 0) << name;
  }
  const AdamWSettings adam =
      read("mnli", {"--adam-beta1", "0.8", "--adam-beta2", "0.98", "--adam-eps", "1e-6"}).run.optimizer.adamw;
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.98);
  EXPECT_EQ(adam.epsilon, 1e-6);
  EXPECT_THAT(refusal({"--adam-beta2", "1"}), HasSubstr("--adam-beta2 is 1; it must be at least 0 and below 1"));
}

}  // namespace
}  // namespace teratron::testing
