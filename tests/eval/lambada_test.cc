#include "eval/lambada.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "comm/launch.h"
#include "data/dataset_fixture.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kTokens = 9;

std::vector<Continuation> random_examples(std::int64_t vocab) {
  std::mt19937 random(4);
  std::vector<Continuation> examples(23);
  for (Continuation& example : examples) {
    example.ids.resize(2 + random() % kTokens);
    for (std::int32_t& id : example.ids) id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab));
    example.scored = 1 + static_cast<std::int64_t>(random() % std::min<std::size_t>(3, example.ids.size() - 1));
  }
  return examples;
}

struct Scored {
  ClozeResult result;
  std::vector<bool> found;
};

Scored score(const std::vector<Continuation>& examples, std::int64_t batch, const MeshShape& shape) {
  Scored scored;
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_cpu_backend();
    LanguageModel model(*backend, small_config(),
                        {.purpose = Purpose::kEvaluation, .batch = batch, .tokens = kTokens, .logits_chunk = 2},
                        std::make_shared<Mesh>(make_mesh(world, shape)));
    model.allocate();
    model.initialize(5);
    std::vector<bool> found;
    const ClozeResult result = score_cloze(model, examples, {}, &found);
    if (world.rank() == shape.ranks() - 1) scored = {result, found};
  });
  return scored;
}

// Bytes are tokens here.
TEST(Lambada, AWordLongerThanTheContextIsReportedByItsPassage) {
  const std::vector<std::string> passages = {"two words", "a longest word"};
  EXPECT_EQ(cloze_examples(passages, byte_tokenizer(), 6).examples.size(), 2U);
  EXPECT_THAT(
      [&] {
        cloze_examples(std::vector<std::string>{"a b", "c longest"}, byte_tokenizer(), 7);
      },
      ::testing::ThrowsMessage<UserError>(
          ::testing::HasSubstr("passage 2: its last word has 8 tokens, and the model sees 7; take the passage out")));
}

TEST(Lambada, TextsBeginAsTheTokenizersModelsLearnedThem) {
  const std::vector<std::string> passages = {"two words"};
  const auto word_of = [&](const BpePipeline& pipeline) {
    BpeModel model;
    for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
    model.tokens.insert(model.tokens.end(), {"<|endoftext|>", "<s>"});
    model.special = {256, 257};
    model.pipeline = pipeline;
    return cloze_examples(passages, Tokenizer(std::move(model)), 20).examples.at(0);
  };
  EXPECT_EQ(word_of({}).ids.size(), passages.front().size());
  const Continuation prefixed = word_of({.prefix = BpePrefix::kAlways, .beginning = "<s>"});
  EXPECT_EQ(prefixed.ids.front(), 257);
  EXPECT_EQ(prefixed.ids.size(), passages.front().size() + 2) << "a space before the text, none before the word";
  EXPECT_EQ(prefixed.scored, std::ssize(std::string(" words")));
}

// Each word as generation would find it: the likeliest token after every one.
TEST(Lambada, AWordIsFoundIfEachOfItsTokensIsTheLikeliest) {
  const auto backend = make_cpu_backend();
  LanguageModel model(*backend, small_config(), {.purpose = Purpose::kGeneration, .tokens = kTokens});
  model.allocate();
  model.initialize(5);
  const auto vocab = static_cast<std::size_t>(model.config().vocab_size);
  std::vector<Continuation> examples = random_examples(model.config().vocab_size);
  std::vector<bool> found;
  double log_probability = 0;
  for (std::size_t number = 0; number < examples.size(); ++number) {
    Continuation& example = examples[number];
    const std::size_t inputs = example.ids.size() - 1;
    std::vector<float> logits(inputs * vocab);
    bool is_found = true;
    for (std::size_t at = inputs - static_cast<std::size_t>(example.scored); at < inputs; ++at) {
      model.logits(std::span(example.ids).first(inputs), 0, static_cast<std::int64_t>(inputs), logits);
      const std::span<const float> row = std::span(logits).subspan(at * vocab, vocab);
      const auto likeliest = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
      if (number % 2 == 0) example.ids[at + 1] = likeliest;  // words that are found
      is_found = is_found && example.ids[at + 1] == likeliest;
      double sum = 0;
      for (const float logit : row) sum += std::exp(static_cast<double>(logit));
      log_probability += static_cast<double>(row[static_cast<std::size_t>(example.ids[at + 1])]) - std::log(sum);
    }
    found.push_back(is_found);
  }
  const Scored scored = score(examples, 4, {});
  EXPECT_EQ(scored.found, found);
  EXPECT_EQ(scored.result.correct, std::ranges::count(found, true));
  EXPECT_GE(scored.result.correct, 12);
  EXPECT_LT(scored.result.correct, 23);
  EXPECT_NEAR(scored.result.log_probability, log_probability, 1e-5 * std::abs(log_probability));
}

using Table = std::vector<float>;  // token embeddings [vocabulary, hidden], as which the output projection is tied

Table table_of(LanguageModel& model) {
  Table table(static_cast<std::size_t>(model.config().vocab_size * model.config().hidden_size));
  model.backend().download(table.data(), model.model().embedding.tokens.value.slice(0, 0, model.config().vocab_size));
  return table;
}

// This rank's rows of it.
void take_table(LanguageModel& model, const Table& table) {
  const Parameter& tokens = model.model().embedding.tokens;
  const std::int64_t begin = model.model().embedding.vocab_begin(), hidden = model.config().hidden_size,
                     rows = std::clamp<std::int64_t>(model.config().vocab_size - begin, 0, tokens.shape[0]);
  if (rows > 0) model.backend().upload(tokens.value.slice(0, 0, rows), table.data() + begin * hidden);
}

std::vector<bool> found_with(const Table& table, const std::vector<Continuation>& examples, const MeshShape& shape) {
  std::vector<bool> found;
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_cpu_backend();
    LanguageModel model(*backend, small_config(),
                        {.purpose = Purpose::kEvaluation, .batch = 3, .tokens = kTokens, .logits_chunk = 2},
                        std::make_shared<Mesh>(make_mesh(world, shape)));
    model.allocate();
    model.initialize(5);
    take_table(model, table);
    std::vector<bool> here;
    score_cloze(model, examples, {}, &here);
    if (world.rank() == 0) found = here;
  });
  return found;
}

const std::vector<MeshShape> kSplits = {{}, {.tensor = 3}, {.data = 2}, {.tensor = 3, .pipeline = 2}};

// Every token but the last one has a twin with the same row, which under three ranks lies with another one. argmax over
// whole rows of logits says which words are found.
TEST(Lambada, TakesTheLowestIdAmongEquallyLikelyTokensInEverySplit) {
  const auto backend = make_cpu_backend();
  LanguageModel model(*backend, small_config(), {.purpose = Purpose::kGeneration, .tokens = kTokens});
  model.allocate();
  model.initialize(5);
  const auto vocab = static_cast<std::size_t>(model.config().vocab_size), half = vocab / 2,
             hidden = static_cast<std::size_t>(model.config().hidden_size);
  Table table = table_of(model);
  std::copy_n(table.begin(), half * hidden, table.begin() + static_cast<std::ptrdiff_t>(half * hidden));
  take_table(model, table);
  std::vector<Continuation> examples = random_examples(model.config().vocab_size);
  std::vector<bool> found;
  std::int64_t twins = 0;
  for (std::size_t number = 0; number < examples.size(); ++number) {
    Continuation& example = examples[number];
    example.scored = 1;
    const std::size_t inputs = example.ids.size() - 1;
    std::vector<float> logits(vocab);
    model.logits(std::span(example.ids).first(inputs), 0, 1, logits);
    const auto likeliest = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
    const auto twin = static_cast<std::size_t>(likeliest) + half;
    if (number % 3 == 0) example.ids.back() = likeliest;
    if (number % 3 == 1 && twin + 1 < vocab) {
      EXPECT_EQ(logits[twin], logits[static_cast<std::size_t>(likeliest)]);
      example.ids.back() = static_cast<std::int32_t>(twin);
      ++twins;
    }
    found.push_back(example.ids.back() == likeliest);
  }
  EXPECT_GT(twins, 3);
  for (const MeshShape& shape : kSplits) EXPECT_EQ(found_with(table, examples, shape), found);
}

TEST(Lambada, AModelOfEqualLogitsFindsTokenZeroAlone) {
  const Table zeros(static_cast<std::size_t>(small_config().vocab_size * small_config().hidden_size));
  const std::vector<Continuation> examples = random_examples(small_config().vocab_size);
  std::vector<bool> expected;
  for (const Continuation& example : examples) {
    expected.push_back(std::count(example.ids.end() - example.scored, example.ids.end(), 0) == example.scored);
  }
  for (const MeshShape& shape : kSplits) EXPECT_EQ(found_with(zeros, examples, shape), expected);
}

TEST(Lambada, BatchesAndLayoutsChangeNothing) {
  const std::vector<Continuation> examples = random_examples(small_config().vocab_size);
  const Scored alone = score(examples, 1, {});
  EXPECT_EQ(alone.result.examples, 23);
  for (const MeshShape& shape : std::vector<MeshShape>{{}, {.tensor = 3}, {.data = 3}, {.pipeline = 2, .data = 2}}) {
    const Scored other = score(examples, 5, shape);
    EXPECT_EQ(other.found, alone.found);
    EXPECT_NEAR(other.result.log_probability, alone.result.log_probability, 1e-4);
  }
}

}  // namespace
}  // namespace teratron::testing
