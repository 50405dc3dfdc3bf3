// Samples of pairs of answers: both texts of a pair in one sample, apart from each other, and the answers' tokens as
// the only targets.
#include "data/samples/preference_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

// A prompt, the chosen answer, the prompt, the rejected one.
using PairTexts = std::array<Document, 4>;

struct Pairs {
  std::shared_ptr<const IndexedDataset> dataset;
  CorpusPart part;
};

Pairs write_pairs(const TemporaryFolder& folder, const std::vector<PairTexts>& pairs) {
  IndexedDatasetWriter writer(folder / "pairs", 1 << 20);
  for (const PairTexts& texts : pairs) {
    for (const Document& text : texts) writer.add_sequence(text);
    writer.end_document();
  }
  writer.commit(identity_of(byte_tokenizer(), "bytes"), SequenceUnit::kPair);
  Pairs made{.dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder / "pairs"))};
  made.part = split_corpus(*made.dataset, std::vector<double>{1}, kFileOrder).front();
  return made;
}

std::vector<PairTexts> random_pairs(std::mt19937_64& random, std::int64_t count, int longest) {
  std::vector<PairTexts> pairs(static_cast<std::size_t>(count));
  std::int32_t next = 1;
  for (PairTexts& texts : pairs) {
    for (Document& text : texts) {
      text.resize(random() % static_cast<std::uint64_t>(longest));
      for (auto& token : text) token = next++;
    }
  }
  return pairs;
}

// Tokens of an answer that are targets, by the answer's sign; tokens are numbers of their own.
struct PairTargets {
  std::vector<std::int32_t> chosen, rejected;
  auto operator<=>(const PairTargets&) const = default;
};

std::vector<std::int32_t> targets_of(const Document& prompt, const Document& answer, std::int64_t inputs) {
  Document text = prompt;
  text.insert(text.end(), answer.begin(), answer.end());
  text.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(inputs + 1, 0, std::ssize(text))));
  const std::size_t first = std::max<std::size_t>(prompt.size(), 1);
  return first < text.size() ? std::vector<std::int32_t>(text.begin() + static_cast<std::ptrdiff_t>(first), text.end())
                             : std::vector<std::int32_t>();
}

// Each text of a pair that is too long keeps half of the sample, or what the other leaves.
std::vector<PairTargets> expected_targets(const std::vector<PairTexts>& pairs, std::int64_t seq_length) {
  std::vector<PairTargets> expected;
  for (const PairTexts& texts : pairs) {
    const std::int64_t chosen = std::ssize(texts[0]) + std::ssize(texts[1]) - 1,
                       rejected = std::ssize(texts[2]) + std::ssize(texts[3]) - 1, half = seq_length / 2;
    std::int64_t keeps = chosen;
    if (chosen + rejected > seq_length && chosen > half)
      keeps = rejected < seq_length - half ? seq_length - rejected : half;
    const PairTargets targets{.chosen = targets_of(texts[0], texts[1], keeps),
                              .rejected = targets_of(texts[2], texts[3], seq_length - std::min(keeps, chosen))};
    if (!targets.chosen.empty() && !targets.rejected.empty()) expected.push_back(targets);
  }
  std::ranges::sort(expected);
  return expected;
}

TEST(PreferenceSamples, AnEpochHasEveryPairOnceInOneSample) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    const TemporaryFolder folder;
    const auto seq_length = static_cast<std::int64_t>(4 + random() % 50);
    const std::vector<PairTexts> pairs = random_pairs(random, 1 + static_cast<std::int64_t>(random() % 40), 12);
    const std::vector<PairTargets> expected = expected_targets(pairs, seq_length);
    const Pairs made = write_pairs(folder, pairs);
    if (expected.empty()) {
      EXPECT_THROW(PreferenceSamples(made.dataset, made.part, seq_length, SampleOrder::kShuffled), UserError);
      continue;
    }
    const SampleOrder order = round % 2 == 0 ? SampleOrder::kShuffled : SampleOrder::kSequential;
    const PreferenceSamples samples(made.dataset, made.part, seq_length, order, random());
    const std::int64_t count = samples.samples_per_epoch();
    for (const std::int64_t epoch : {0, 3}) {
      SampleBatch batch = samples.make_batch(count + 1);
      samples.read({epoch * count, count}, batch, 1);
      std::map<std::pair<std::int64_t, std::int32_t>, PairTargets> found;  // by sample and number
      for (std::int64_t at = seq_length; at < (count + 1) * seq_length; ++at) {
        const auto i = static_cast<std::size_t>(at);
        EXPECT_EQ(batch.first_keys[i] + batch.position_ids[i], at % seq_length);
        EXPECT_EQ(batch.weights[i], batch.answers[i] == 0 ? 0 : 1);
        if (batch.answers[i] == 0) continue;
        PairTargets& pair = found[{at / seq_length, std::abs(batch.answers[i])}];
        (batch.answers[i] > 0 ? pair.chosen : pair.rejected).push_back(batch.targets[i]);
        // A text's tokens are consecutive numbers within prompt and answer, and the target follows its input.
        if (batch.position_ids[i] > 0) {
          EXPECT_EQ(batch.targets[i - 1], batch.ids[i]);
        }
      }
      EXPECT_EQ(samples.total_weights({epoch * count, count}).targets, static_cast<double>(found.size()));
      std::vector<PairTargets> all;
      for (const auto& [place, pair] : found) all.push_back(pair);
      std::ranges::sort(all);
      EXPECT_EQ(all, expected);
    }
  }
}

TEST(PreferenceSamples, CutsAreReported) {
  const TemporaryFolder folder;
  const Pairs made = write_pairs(folder, {PairTexts{Document{1, 2}, {3, 4, 5, 6, 7}, {1, 2}, {8}},
                                          PairTexts{Document{1, 2, 3, 4, 5}, {6, 7}, {1, 2, 3, 4, 5}, {8}},
                                          PairTexts{Document{1}, {2}, {1}, {3}}});
  const PreferenceSamples samples(made.dataset, made.part, 7, SampleOrder::kSequential);
  EXPECT_EQ(samples.left_out(),
            "2 pairs of answers in 2 samples of 7 tokens, 35.7 % of them padding\n"
            "2 longer, without 5 tokens at the ends of the texts, 4 of them of answers\n"
            "1 without a word of one of the answers left out");
  EXPECT_EQ(samples.source(1), "document 2 of '" + (folder / "pairs").string() + "', tokens 0 to 3");
}

TEST(PreferenceSamples, OtherCorporaAreRefused) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  const Pairs made = write_pairs(folder, random_pairs(random, 1, 9));
  write_dataset(folder / "texts", {{1, 2, 3}}, 10);
  const auto fault_of = [](const auto& call) { return message_of<UserError>(call); };
  EXPECT_THAT(fault_of([&] { require_whole_documents(folder / "pairs"); }), HasSubstr("--dpo"));
  EXPECT_THAT(fault_of([&] { require_chats(folder / "pairs"); }), HasSubstr("data chat"));
  EXPECT_THAT(fault_of([&] { require_pairs(folder / "texts"); }), HasSubstr("data preferences"));
  require_pairs(folder / "pairs");
  const CorpusPart piece = split_corpus(*made.dataset, std::vector<double>{1, 1}, kFileOrder).front();
  EXPECT_THAT(fault_of([&] { PreferenceSamples(made.dataset, piece, 9, SampleOrder::kSequential); }),
              HasSubstr("--split 1"));
}

}  // namespace
}  // namespace teratron::testing
