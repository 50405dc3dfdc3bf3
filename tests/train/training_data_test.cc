// Which documents a run trains on and is validated on: of one corpus, of its shards, of blends, and of two flags.
#include "train/training_data.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/files/file.h"
#include "base/message_of.h"
#include "options/output.h"
#include "options/reading.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tokens = std::set<std::int32_t>;
using Words = std::vector<std::string>;

constexpr int kCorpusBits = 20;

class DataOfRuns : public TrainingFixture {
 protected:
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Tokens that tell their corpus and their place in it.
  std::string numbered(int corpus, std::int64_t documents, const std::function<std::int64_t()>& length) {
    const std::string prefix = path(fmt::format("numbered-{}", corpus));
    IndexedDatasetWriter writer(prefix, 1 << 30);
    std::int32_t next = corpus << kCorpusBits;
    for (; documents > 0; --documents) {
      std::vector<std::int32_t> document(static_cast<std::size_t>(length()));
      for (auto& token : document) token = next++;
      writer.add_document(document);
    }
    writer.commit();
    return prefix;
  }

  // Documents of the fixture's corpus from `first` on, every `step`-th of them.
  std::string some_of_corpus(const std::string& name, std::int64_t first, std::int64_t step) const {
    const IndexedDataset corpus = IndexedDataset::open(folder_ / "corpus");
    IndexedDatasetWriter writer(folder_ / name, kVocab);
    for (std::int64_t i = first; i < corpus.documents(); i += step) {
      std::vector<std::int32_t> document(static_cast<std::size_t>(corpus.document(i).size()));
      corpus.read(corpus.document(i).begin, document);
      writer.add_document(document);
    }
    writer.commit();
    return path(name);
  }

  static TrainingSamples samples_of(const TrainConfig& config, const SplitRule& rule) {
    return make_training_samples(config, open_training_data(config), rule);
  }

  static std::vector<std::int32_t> read(const Samples& samples, SampleRange positions) {
    SampleBatch batch = samples.make_batch(positions.count);
    samples.read(positions, batch, 0);
    return batch.ids;
  }

  // Everything that the first `count` samples hold, targets included.
  static Tokens tokens_of(const Samples& samples, std::int64_t count) {
    SampleBatch batch = samples.make_batch(count);
    samples.read({0, count}, batch, 0);
    Tokens tokens(batch.ids.begin(), batch.ids.end());
    tokens.insert(batch.targets.begin(), batch.targets.end());
    return tokens;
  }

  static bool are_disjoint(const Tokens& a, const Tokens& b) {
    return std::ranges::none_of(a, [&](std::int32_t token) { return b.contains(token); });
  }

  std::string refusal() const {
    return message_of<UserError>([&] { make_training_task(config_, open_training_data(config_), kVocab); });
  }

  std::mt19937_64 random_{1};
};

TEST_F(DataOfRuns, HeldOutSamplesOfABlendAreNeverTrainedOn) {
  for (int round = 0; round < 30; ++round) {
    config_.model.seq_length = 1 + below(6);
    config_.seed = 1 + below(1000);
    config_.data_path.clear();
    const std::int64_t corpora = 1 + below(4);
    for (int corpus = 0; corpus < corpora; ++corpus) {
      if (corpora > 1) config_.data_path.push_back(std::to_string(1 + below(9)));
      config_.data_path.push_back(numbered(corpus, 2 + below(30), [&] { return 8 + below(20); }));
    }
    const SplitRule rule = below(2) == 0 ? kFileOrder : SplitRule{.seed = random_()};
    const TrainingSamples samples = samples_of(config_, rule);
    const Tokens held_out = tokens_of(*samples.validation, samples.validation->samples_per_epoch());
    const Tokens trained_on = tokens_of(*samples.training, 2 * samples.training->samples_per_epoch() + 50);
    ASSERT_FALSE(held_out.empty());
    ASSERT_TRUE(are_disjoint(held_out, trained_on));
  }
}

TEST_F(DataOfRuns, WithDataOfItsOwnValidationReadsItInOrderAndTrainingReadsAllOfTheRest) {
  for (int round = 0; round < 30; ++round) {
    config_.model.seq_length = 1 + below(6);
    config_.split.weights.clear();
    config_.seed = 1 + below(1000);
    config_.data_path = {numbered(0, 1 + below(30), [&] { return 8 + below(20); })};
    config_.valid_data_path = {numbered(1, 1 + below(9), [&] { return 8 + below(20); })};
    EXPECT_THAT(config_.faults().texts(), IsEmpty());
    const SplitRule rule = below(2) == 0 ? kFileOrder : SplitRule{.seed = random_()};
    const TrainingSamples samples = samples_of(config_, rule);
    const std::int64_t count = samples.validation->samples_per_epoch();
    const std::vector<std::int32_t> validation = read(*samples.validation, {0, count});
    for (std::size_t i = 0; i < validation.size(); ++i) {
      ASSERT_EQ(validation[i], (1 << kCorpusBits) + static_cast<std::int32_t>(i));
    }
    // Every epoch leaves fewer tokens out than a sample has, at a place of its own.
    const std::int64_t tokens = IndexedDataset::open(config_.data_path.front()).tokens();
    const Tokens trained_on = tokens_of(*samples.training, samples.training->samples_per_epoch());
    ASSERT_GT(static_cast<std::int64_t>(trained_on.size()), tokens - config_.model.seq_length);
    ASSERT_LT(*trained_on.rbegin(), 1 << kCorpusBits);
    ASSERT_THAT(samples.description, HasSubstr(fmt::format("validation on all of '{}'", path("numbered-1"))));
  }
}

TEST_F(DataOfRuns, CorporaOfABlendAreShuffledEachInItsOwnWayTheFirstAsIfItWereAlone) {
  const auto length = [] { return 20; };
  const std::string a = numbered(0, 50, length), b = numbered(1, 50, length);
  const auto training = [&](const Words& data_path) {
    config_.data_path = data_path;
    return samples_of(config_, kFileOrder).training;
  };
  const auto alone = training({a}), blend = training({"1", a, "1", b});
  std::vector<std::int32_t> of_a, of_b;
  for (std::int64_t position = 0; position < 40; ++position) {
    for (const std::int32_t token : read(*blend, {position, 1})) {
      (token >> kCorpusBits == 0 ? of_a : of_b).push_back(token % (1 << kCorpusBits));
    }
  }
  EXPECT_EQ(of_a, read(*alone, {0, 20}));
  EXPECT_EQ(of_b.size(), of_a.size());
  EXPECT_NE(of_b, of_a);
}

TEST_F(DataOfRuns, TheDescriptionHasTheSharesOfABlend) {
  const auto length = [] { return 20; };
  config_.data_path = {"0.7", numbered(0, 50, length), "0.3", numbered(1, 10, length)};
  config_.train_iters = 50;  // of 4 samples: 140 of the first corpus' 56 an epoch, 60 of the second's 11
  const std::string text = samples_of(config_, kFileOrder).description;
  EXPECT_THAT(text, AllOf(HasSubstr("a blend of 2 corpora, each split by --split-order file with the weights 9,1"),
                          ::testing::ContainsRegex("numbered-0' +70 % +45 +56 +2.50\n"),
                          ::testing::ContainsRegex("numbered-1' +30 % +9 +11 +5.45$")));
}

TEST_F(DataOfRuns, TheDescriptionCountsWhatAResumedRunHasReadInItsBatches) {
  config_.data_path = {"1", some_of_corpus("even", 0, 2), "1", some_of_corpus("odd", 1, 2)};
  const auto text_of_run = [&](std::int64_t batch, std::int64_t updates) {
    config_.batch.global_batch_size = batch;
    config_.train_iters = updates;
    return samples_of(config_, kFileOrder).description;
  };
  config_.output.save = folder_ / "save";
  config_.train_iters = 2;
  train(config_);  // 8 samples
  config_.output.load = config_.output.save;
  const std::string resumed = text_of_run(8, 10);
  config_.output.load.clear();
  EXPECT_EQ(resumed, text_of_run(4, 18));
  EXPECT_NE(resumed, text_of_run(8, 10));
}

TEST_F(DataOfRuns, ShardsTrainTheSameBitsAsTheWhole) {
  const TrainingRun whole = train(config_);
  // Runs of the corpus: what is left of it is in three files, whose order is that of the words.
  const IndexedDataset corpus = IndexedDataset::open(folder_ / "corpus");
  Words shards;
  for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 11}, {11, 12}, {12, 40}}) {
    shards.push_back(path(fmt::format("shard-{}", begin)));
    IndexedDatasetWriter writer(shards.back(), kVocab);
    for (std::int64_t i = begin; i < end; ++i) {
      std::vector<std::int32_t> document(static_cast<std::size_t>(corpus.document(i).size()));
      corpus.read(corpus.document(i).begin, document);
      writer.add_document(document);
    }
    writer.commit();
  }
  config_.data_path = shards;
  const TrainingRun run = train(config_);
  EXPECT_EQ(run.losses, whole.losses);
  EXPECT_EQ(run.validations, whole.validations);
  EXPECT_EQ(run.parameters, whole.parameters);
}

TEST_F(DataOfRuns, ARunOnABlendIsTheSameOnAnyLayoutAndWhenResumedAnywhere) {
  config_.data_path = {"0.6", some_of_corpus("even", 0, 2), "0.3", some_of_corpus("odd", 1, 4),
                       "0.1", some_of_corpus("rest", 3, 4)};
  config_.output.eval_interval = 4;
  config_.optimizer.learning_rate.peak = 1e-3;
  config_.optimizer.learning_rate.decay = config_.train_iters;
  const TrainingRun whole = train(config_);
  EXPECT_EQ(whole.validations.size(), 2U);
  for (const std::int64_t stop : {1, 5}) {
    expect_same_bits(train_in_two(config_, stop), whole, fmt::format("stopped after {}", stop));
  }
  for (const auto& [tensor, pipeline, data] :
       std::vector<std::array<std::int64_t, 3>>{{1, 1, 2}, {1, 2, 1}, {3, 1, 1}}) {
    TrainConfig layout = config_;
    layout.layout.tensor_parallel = tensor;
    layout.layout.pipeline_parallel = pipeline;
    layout.layout.data_parallel = data;
    expect_same_training(train(layout), whole, fmt::format("{} x {} x {}", tensor, pipeline, data));
  }
}

TEST_F(DataOfRuns, TheConfigurationIsSavedAndReadBackWithItsCorpora) {
  const std::string a = some_of_corpus("s-1", 0, 2), b = some_of_corpus("s-2", 1, 4), c = some_of_corpus("t", 3, 4);
  const auto read_words = [](const Words& words) {
    TrainConfig config;
    FieldList fields = fields_of(config);
    EXPECT_THAT(read_fields(fields, words), IsEmpty());
    return config;
  };
  const TrainConfig config =
      read_words({"--data-path", "0.7", path("s-*"), "0.3", c, "--valid-data-path", path("s-?"), "--seed", "2"});
  EXPECT_THAT(config.data_path, ElementsAre("0.7", a + "," + b, "0.3", c));
  EXPECT_THAT(config.valid_data_path, ElementsAre(a, b));
  write_file_atomically(folder_ / "a.toml", to_toml(config));
  some_of_corpus("s-3", 0, 3);  // a shard that comes later
  const TrainConfig again = read_words({"--config", path("a.toml")});
  EXPECT_EQ(again.data_path, config.data_path);
  EXPECT_EQ(again.valid_data_path, config.valid_data_path);
  EXPECT_EQ(again.split.weights, config.split.weights);
}

TEST_F(DataOfRuns, RefusesContradictions) {
  config_.data_path = {path("corpus")};
  config_.valid_data_path = {some_of_corpus("even", 0, 2)};
  EXPECT_THAT(config_.faults().texts(),
              ElementsAre(HasSubstr("--split 9,1 holds documents out, but with --valid-data-path")));
  for (const std::string split : {"", "1", "1,0", "5,0,0"}) {
    config_.split.weights = split;
    EXPECT_THAT(config_.faults().texts(), IsEmpty()) << split;
  }
  for (const std::string split : {"0,1", "1,0,1"}) {
    config_.split.weights = split;
    EXPECT_EQ(config_.faults().size(), 1U) << split;
  }
  config_.split.weights.clear();
  config_.data_path = {"1", "a", "b"};
  config_.valid_data_path = {"1"};
  EXPECT_THAT(config_.faults().texts(),
              ElementsAre(HasSubstr("--data-path has 'b'"), HasSubstr("--valid-data-path has")));
  config_.data_path = {path("corpus"), path("even")};
  config_.valid_data_path = {"1", path("even")};
  EXPECT_THAT(refusal(), HasSubstr("even' is in both --data-path and --valid-data-path"));
}

TEST_F(DataOfRuns, ACorpusThatDoesNotFitIsNamed) {
  const std::string small = path("small"), strange = path("strange");
  IndexedDatasetWriter writer(small, kVocab);
  for (int i = 0; i < 4; ++i) writer.add_document(std::vector<std::int32_t>{1, 2, 3});
  writer.commit();
  IndexedDatasetWriter other(strange, 2 * kVocab);
  for (int i = 0; i < 40; ++i) other.add_document(std::vector<std::int32_t>(30, static_cast<std::int32_t>(kVocab)));
  other.commit();
  config_.data_path = {"1", path("corpus"), "1", small};
  EXPECT_THAT(refusal(), HasSubstr("the training part of '" + small + "' has"));
  config_.data_path = {"1", path("corpus"), "1", strange};
  EXPECT_THAT(refusal(), HasSubstr("strange.bin' holds token id 50"));
  config_.data_path = {path("corpus")};
  config_.split.weights.clear();
  config_.valid_data_path = {small};
  EXPECT_THAT(refusal(), HasSubstr("the validation part of '" + small + "' has 12 of its 12 tokens"));
  config_.valid_data_path = {"1", strange, "1", some_of_corpus("even", 0, 2)};
  EXPECT_THAT(refusal(), HasSubstr("strange.bin' holds token id 50"));
}

}  // namespace
}  // namespace teratron::testing
