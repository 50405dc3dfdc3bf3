// Best-fit packing, seen in its samples: corpora are numbered (a token is its own position), so every sample names the
// documents that it holds.
#include "data/samples/packed_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <set>

#include "base/error.h"
#include "data/random_corpus.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kNoToken = 1 << 29;  // the end-of-document token of numbered corpora, which is in none
constexpr DocumentOptions kApart{.reset_attention_mask = true, .reset_position_ids = true, .end_token = kNoToken};

// The definition, without its data structures.
std::vector<std::vector<std::int64_t>> best_fit_by_definition(std::vector<std::int64_t> sizes, std::int64_t capacity) {
  std::ranges::sort(sizes, std::ranges::greater());
  std::vector<std::vector<std::int64_t>> bins;
  std::vector<std::int64_t> rooms;
  for (const std::int64_t size : sizes) {
    std::ptrdiff_t best = -1;
    for (std::ptrdiff_t bin = 0; bin < std::ssize(bins); ++bin) {
      const auto b = static_cast<std::size_t>(bin);
      if (rooms[b] >= size && (best < 0 || rooms[b] < rooms[static_cast<std::size_t>(best)])) best = bin;
    }
    if (best < 0) {
      best = std::ssize(bins);
      bins.emplace_back();
      rooms.push_back(capacity);
    }
    bins[static_cast<std::size_t>(best)].push_back(size);
    rooms[static_cast<std::size_t>(best)] -= size;
  }
  return bins;
}

TEST(BestFitDecreasing, HasTheBinsOfItsDefinition) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto capacity = static_cast<std::int64_t>(1 + random() % 40);
    std::vector<std::int64_t> sizes(random() % 80);
    for (auto& size : sizes) size = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(capacity));
    const std::vector<std::int64_t> bins = best_fit_decreasing(sizes, capacity);
    std::map<std::int64_t, std::vector<std::int64_t>> filled;
    std::int64_t next = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_LE(bins[i], next);
      next = std::max(next, bins[i] + 1);
      filled[bins[i]].push_back(sizes[i]);
    }
    // Bins of equal room may change places, and with them what comes into them; how full bins are does not.
    const auto fills = [](auto&& of_bins) {
      std::multiset<std::int64_t> sums;
      for (const auto& bin : of_bins) sums.insert(std::reduce(bin.begin(), bin.end()));
      return sums;
    };
    std::vector<std::vector<std::int64_t>> ours;
    for (auto& [bin, items] : filled) ours.push_back(std::move(items));
    ASSERT_EQ(fills(ours), fills(best_fit_by_definition(sizes, capacity)));
    for (const auto& bin : ours) ASSERT_LE(std::reduce(bin.begin(), bin.end()), capacity);
  }
}

struct RandomPacking {
  RandomCorpus corpus;
  std::shared_ptr<const PackedSamples> samples;
};

RandomPacking random_packing(const TemporaryFolder& folder, std::mt19937_64& random) {
  RandomCorpus corpus = random_corpus(folder, random);
  while (std::ranges::none_of(std::views::iota(std::int64_t{0}, corpus.part.documents()),
                              [&](std::int64_t i) { return corpus.part.document(*corpus.dataset, i).size() > 1; })) {
    corpus = random_corpus(folder, random);
  }
  auto samples = std::make_shared<const PackedSamples>(corpus.dataset, corpus.part, corpus.seq_length,
                                                       SampleOrder::kShuffled, random(), kApart);
  return {std::move(corpus), std::move(samples)};
}

TEST(PackedSamples, AnEpochAsksForEachTokenButTheFirstOfADocumentOnce) {
  const TemporaryFolder folder;
  std::mt19937_64 random(2);
  for (int round = 0; round < 40; ++round) {
    const auto [corpus, samples] = random_packing(folder, random);
    const std::int64_t length = corpus.seq_length, count = samples->samples_per_epoch();
    std::vector<std::int32_t> expected;
    std::map<std::int32_t, TokenRange> document_of;  // by its first token
    for (std::int64_t i = 0; i < corpus.part.documents(); ++i) {
      const TokenRange document = corpus.part.document(*corpus.dataset, i);
      for (std::int64_t t = document.begin + 1; t < document.end; ++t) expected.push_back(static_cast<std::int32_t>(t));
      if (document.size() > 0) document_of[static_cast<std::int32_t>(document.begin)] = document;
    }
    for (const std::int64_t epoch : {0, 1, 5}) {
      SampleBatch batch = samples->make_batch(count);
      samples->read({epoch * count, count}, batch, 0);
      std::vector<std::int32_t> asked;
      for (std::size_t t = 0; t < batch.ids.size(); ++t) {
        const auto place = static_cast<std::int64_t>(t) % length;
        const std::size_t first = t - static_cast<std::size_t>(place - batch.first_keys[t]);
        ASSERT_EQ(batch.position_ids[t], batch.weights[t] == 0 ? 0 : place - batch.first_keys[t]);
        if (batch.weights[t] == 0) {  // padding, to the end
          ASSERT_EQ(batch.first_keys[t], place);
          ASSERT_TRUE(place + 1 == length || batch.weights[t + 1] == 0);
          continue;
        }
        asked.push_back(batch.targets[t]);
        ASSERT_EQ(batch.targets[t], batch.ids[t] + 1);
        ASSERT_EQ(batch.ids[t] - batch.ids[first], place - batch.first_keys[t]);  // sees its own document alone
        // A document begins at its beginning, or a multiple of the samples' length later.
        const TokenRange document = (--document_of.upper_bound(batch.ids[t]))->second;
        ASSERT_EQ((batch.ids[first] - document.begin) % length, 0);
      }
      std::ranges::sort(asked);
      ASSERT_EQ(asked, expected);
      ASSERT_EQ(samples->total_weights({epoch * count, count}).targets, static_cast<double>(expected.size()));
    }
  }
}

TEST(PackedSamples, ArePureFunctionsOfTheirPositions) {
  const TemporaryFolder folder;
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    const auto [corpus, samples] = random_packing(folder, random);
    const auto first = static_cast<std::int64_t>(random() % 500);
    SampleBatch together = samples->make_batch(6), apart = samples->make_batch(6);
    samples->read({first, 6}, together, 0);
    double total = 0;
    for (const std::int64_t at : {5, 2, 0, 1, 4, 3}) {
      samples->read({first + at, 1}, apart, at);
      total += samples->total_weights({first + at, 1}).targets;
    }
    ASSERT_EQ(apart.ids, together.ids);
    ASSERT_EQ(apart.first_keys, together.first_keys);
    ASSERT_EQ(apart.weights, together.weights);
    ASSERT_EQ(samples->total_weights({first, 6}).targets, total);
    ASSERT_THAT(samples->source(first), HasSubstr("document "));
  }
}

std::vector<std::int64_t> firsts(const PackedSamples& samples, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < samples.samples_per_epoch(); ++i) {
    all.push_back(samples.pieces(epoch * samples.samples_per_epoch() + i).front().begin);
  }
  return all;
}

TEST(PackedSamples, HaveAnOrderForEachEpochAndSeedAndOneForValidation) {
  const TemporaryFolder folder;
  std::mt19937_64 random(4);
  const auto dataset = numbered_dataset(folder / "corpus", random_lengths(random, 200, 30));
  const CorpusPart part = split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front();
  const auto make = [&](SampleOrder order, std::uint64_t seed) {
    return PackedSamples(dataset, part, 32, order, seed, kApart);
  };
  const PackedSamples samples = make(SampleOrder::kShuffled, 1), other = make(SampleOrder::kShuffled, 2),
                      validation = make(SampleOrder::kSequential, 1), same = make(SampleOrder::kSequential, 2);
  const std::set<std::vector<std::int64_t>> orders = {firsts(samples, 0), firsts(samples, 1), firsts(other, 0)};
  EXPECT_EQ(orders.size(), 3U);
  EXPECT_EQ(firsts(validation, 0), firsts(same, 0));
  EXPECT_EQ(firsts(validation, 0), firsts(validation, 3));
  EXPECT_TRUE(std::ranges::is_sorted(firsts(validation, 0)));
  EXPECT_FALSE(std::ranges::is_sorted(firsts(samples, 0)));
}

// Documents are the corpus': an end-of-document token within one is a token like others.
TEST(PackedSamples, AreCutAtTheEndsOfTheCorpusDocumentsAlone) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {{5, 3, 6, 7, 3}, {8, 9, 3}}, 10);
  const auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder / "corpus"));
  const CorpusPart part = split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front();
  const PackedSamples samples(dataset, part, 8, SampleOrder::kShuffled, 0,
                              {.reset_attention_mask = true, .eod_mask_loss = true, .end_token = 3});
  ASSERT_EQ(samples.samples_per_epoch(), 1);
  SampleBatch batch = samples.make_batch(1);
  samples.read({0, 1}, batch, 0);
  EXPECT_EQ(batch.ids, (Document{5, 3, 6, 7, 8, 9, 3, 3}));
  EXPECT_EQ(batch.targets, (Document{3, 6, 7, 3, 9, 3, 3, 3}));
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(batch.first_keys, (Document{0, 0, 0, 0, 4, 4, 6, 7}));
  EXPECT_EQ(samples.first_keys({0, 1}), batch.first_keys);
  EXPECT_TRUE(batch.position_ids.empty());
  EXPECT_EQ(samples.total_weights({0, 1}).targets, 6);
  EXPECT_THAT(samples.left_out(), HasSubstr("25.00 %"));
}

TEST(PackedSamples, NeedADocumentOfTwoTokens) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {{5}, {}, {8}}, 10);
  const auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder / "corpus"));
  const CorpusPart part = split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front();
  const std::string message = message_of<UserError>(
      [&] { PackedSamples(dataset, part, 8, SampleOrder::kShuffled, 0, {.reset_attention_mask = true}); });
  EXPECT_THAT(message, HasSubstr("two tokens"));
}

}  // namespace
}  // namespace teratron::testing
