// The order of training, told from what comes out: corpora are numbered (a token is its own position), so the stream
// that an epoch was cut from can be put together again from its samples alone.
#include "data/samples/gpt_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "data/random_corpus.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<Document> epoch_of(const GptSamples& samples, std::int64_t epoch) {
  std::vector<Document> result;
  const std::int64_t count = samples.samples_per_epoch();
  for (std::int64_t i = 0; i < count; ++i) result.push_back(sample_of(samples, epoch * count + i));
  return result;
}

// Chunks overlap by one token, and no token occurs elsewhere, so each chunk names the one before it.
Document stream_of(const std::vector<Document>& chunks) {
  std::map<std::int32_t, const Document*> by_first;
  std::set<std::int32_t> lasts;
  for (const Document& chunk : chunks) {
    EXPECT_TRUE(by_first.emplace(chunk.front(), &chunk).second) << "a chunk came twice";
    lasts.insert(chunk.back());
  }
  Document stream;
  for (const auto& [first, chunk] : by_first) {
    if (!lasts.contains(first)) stream.push_back(first);
  }
  EXPECT_EQ(stream.size(), 1U) << "the chunks are not one chain";
  for (auto next = by_first.find(stream.back()); next != by_first.end(); next = by_first.find(stream.back())) {
    stream.insert(stream.end(), next->second->begin() + 1, next->second->end());
  }
  return stream;
}

std::shared_ptr<const IndexedDataset> whole_numbered(const TemporaryFolder& folder,
                                                     const std::vector<std::int64_t>& lengths) {
  return numbered_dataset(folder / "corpus", lengths);
}

CorpusPart whole(const IndexedDataset& dataset) {
  return split_corpus(dataset, std::vector<double>{1}, kFileOrder).front();
}

GptSamples training(const std::shared_ptr<const IndexedDataset>& dataset, std::int64_t seq_length,
                    std::uint64_t seed = 1) {
  return GptSamples(dataset, whole(*dataset), seq_length, SampleOrder::kShuffled, seed);
}

TEST(GptSamples, AnEpochIsOneStreamOfWholeDocumentsCutOnce) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (int round = 0; round < 30; ++round) {
    const auto [dataset, part, seq_length] = random_corpus(folder, random);
    const GptSamples samples(dataset, part, seq_length, SampleOrder::kShuffled, random());
    ASSERT_EQ(samples.samples_per_epoch(), (part.tokens() - 1) / seq_length);
    const Document tokens = tokens_of(*dataset, part);  // ascending
    ASSERT_EQ(static_cast<std::int64_t>(tokens.size()), part.tokens());
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const Document stream = stream_of(epoch_of(samples, epoch));
      ASSERT_EQ(static_cast<std::int64_t>(stream.size()), samples.samples_per_epoch() * seq_length + 1);
      std::set<std::int32_t> seen(stream.begin(), stream.end());
      ASSERT_EQ(seen.size(), stream.size());
      ASSERT_TRUE(std::ranges::includes(tokens, seen));
      // Tokens follow each other within a document; elsewhere, one document ends and another begins.
      std::set<std::int64_t> begins, ends;
      for (std::int64_t d = 0; d < part.documents(); ++d) {
        begins.insert(part.document(*dataset, d).begin);
        ends.insert(part.document(*dataset, d).end);
      }
      for (std::size_t i = 1; i < stream.size(); ++i) {
        if (stream[i] == stream[i - 1] + 1 && !begins.contains(stream[i])) continue;
        ASSERT_TRUE(begins.contains(stream[i]) && ends.contains(stream[i - 1] + 1)) << stream[i - 1] << stream[i];
      }
    }
  }
}

// Which fifth of the part's documents a token belongs to.
std::int64_t shard_of(const IndexedDataset& dataset, std::int32_t token) {
  const std::int64_t documents = dataset.documents();
  for (std::int64_t shard = 0; shard < 5; ++shard) {
    const std::int64_t end = documents * (shard + 1) / 5;
    if (end > 0 && token < dataset.document(end - 1).end) return shard;
  }
  return -1;
}

TEST(GptSamples, ShardsAreReadOneAfterAnotherInAnOrderDrawnEachEpoch) {
  const TemporaryFolder folder;
  std::mt19937_64 random(2);
  const auto dataset = whole_numbered(folder, random_lengths(random, 53, 30));
  const GptSamples samples = training(dataset, 7);
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::int64_t> order;
    for (const Document& chunk : epoch_of(samples, epoch)) {
      const std::int64_t shard = shard_of(*dataset, chunk.front());
      if (order.empty() || order.back() != shard) order.push_back(shard);
    }
    orders.insert(order);
    std::ranges::sort(order);
    ASSERT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4));
  }
  EXPECT_GT(orders.size(), 10U);
}

// How a shuffled row agrees with another: the share of neighbours whose order is the same in both. About one half.
double agreement(const std::vector<std::int64_t>& places) {
  double rising = 0;
  for (std::size_t i = 1; i < places.size(); ++i) rising += places[i] > places[i - 1] ? 1 : 0;
  return rising / static_cast<double>(places.size() - 1);
}

TEST(GptSamples, ChunksAreShuffledWithinAShard) {
  const TemporaryFolder folder;
  std::mt19937_64 random(3);
  const auto dataset = whole_numbered(folder, random_lengths(random, 500, 30));
  const GptSamples samples = training(dataset, 5);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto chunks = epoch_of(samples, epoch);
    const Document stream = stream_of(chunks);
    std::vector<std::int64_t> place_of(static_cast<std::size_t>(dataset->tokens()));
    for (std::size_t i = 0; i < stream.size(); ++i) {
      place_of[static_cast<std::size_t>(stream[i])] = static_cast<std::int64_t>(i);
    }
    std::vector<std::int64_t> places;
    for (const Document& chunk : chunks) places.push_back(place_of[static_cast<std::size_t>(chunk.front())]);
    EXPECT_NEAR(agreement(places), 0.5, 0.1);
  }
}

TEST(GptSamples, DocumentsAreShuffledWithinAShardAnewEachEpochAndForEachSeed) {
  const TemporaryFolder folder;
  std::mt19937_64 random(4);
  const auto dataset = whole_numbered(folder, random_lengths(random, 500, 30));
  // The documents of shard 0 in the order of an epoch's stream, by their first token.
  const auto documents_of_shard = [&](const GptSamples& samples, std::int64_t epoch) {
    std::vector<std::int64_t> documents;
    std::set<std::int64_t> begins;
    for (std::int64_t d = 0; d < 100; ++d) begins.insert(dataset->document(d).begin);
    for (const std::int32_t token : stream_of(epoch_of(samples, epoch))) {
      if (begins.contains(token)) documents.push_back(token);
    }
    return documents;
  };
  std::vector<std::vector<std::int64_t>> orders;
  for (const std::uint64_t seed : {1U, 2U}) {
    const GptSamples samples = training(dataset, 5, seed);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) orders.push_back(documents_of_shard(samples, epoch));
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    EXPECT_NEAR(agreement(orders[i]), 0.5, 0.25);  // against the order of the file
    for (std::size_t j = 0; j < i; ++j) {
      std::map<std::int64_t, std::int64_t> place_in_other;
      for (const std::int64_t document : orders[j]) {
        place_in_other.emplace(document, static_cast<std::int64_t>(place_in_other.size()));
      }
      std::vector<std::int64_t> places;
      for (const std::int64_t document : orders[i]) {
        if (place_in_other.contains(document)) places.push_back(place_in_other[document]);
      }
      EXPECT_NEAR(agreement(places), 0.5, 0.25) << "runs " << i << " and " << j;
    }
  }
}

TEST(GptSamples, EveryChunkIsAsLikelyToComeFirst) {
  const TemporaryFolder folder;
  const auto dataset = whole_numbered(folder, std::vector<std::int64_t>(20, 10));
  std::vector<double> counts(20);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    ++counts[static_cast<std::size_t>(sample_of(training(dataset, 10, seed), 0).front() / 10)];
  }
  double square = 0;
  for (const double count : counts) square += (count - 200) * (count - 200) / 200;
  EXPECT_LT((square - 19) / std::sqrt(2 * 19.0), 4);
}

TEST(GptSamples, APositionGivesTheSameSampleInAnyInstanceAndAnyOrder) {
  const TemporaryFolder folder;
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    const auto [dataset, part, seq_length] = random_corpus(folder, random);
    const std::uint64_t seed = random();
    const GptSamples one(dataset, part, seq_length, SampleOrder::kShuffled, seed);
    const auto reopened = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder / "corpus"));
    const GptSamples other(reopened, part, seq_length, SampleOrder::kShuffled, seed);
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < 3 * one.samples_per_epoch(); ++i) positions.push_back(i);
    std::map<std::int64_t, Document> in_order;
    for (const std::int64_t position : positions) in_order[position] = sample_of(one, position);
    std::ranges::shuffle(positions, random);
    positions.resize(std::min<std::size_t>(positions.size(), 100));  // jumping between epochs builds them again
    for (const std::int64_t position : positions) ASSERT_EQ(sample_of(other, position), in_order[position]);
  }
}

TEST(GptSamples, AResumedRunGoesOnWhereItStopped) {
  const TemporaryFolder folder;
  std::mt19937_64 random(5);
  const auto dataset = whole_numbered(folder, random_lengths(random, 400, 20));
  const GptSamples samples = training(dataset, 6);
  const std::int64_t consumed = samples.samples_per_epoch() * 5 / 2;
  std::vector<Document> whole_run;
  for (std::int64_t i = 0; i < consumed + 100; ++i) whole_run.push_back(sample_of(samples, i));
  const GptSamples resumed = training(dataset, 6);
  for (std::int64_t i = consumed; i < consumed + 100; ++i) {
    ASSERT_EQ(sample_of(resumed, i), whole_run[static_cast<std::size_t>(i)]);
  }
}

TEST(GptSamples, ThreadsReadTheSameSamples) {
  const TemporaryFolder folder;
  std::mt19937_64 random(6);
  const auto dataset = whole_numbered(folder, random_lengths(random, 200, 20));
  const GptSamples expected = training(dataset, 9), shared = training(dataset, 9);
  const std::int64_t count = 3 * expected.samples_per_epoch();
  std::vector<Document> results(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t i = thread; i < count; i += 4) results[static_cast<std::size_t>(i)] = sample_of(shared, i);
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(results[static_cast<std::size_t>(i)], sample_of(expected, i));
  }
}

TEST(GptSamples, ShardsBeyondTheTableOfAPermutationAreReadInFull) {
  const TemporaryFolder folder;
  // More documents and chunks in a shard than a permutation keeps a table of, so both networks are at work.
  const auto dataset = whole_numbered(folder, std::vector<std::int64_t>(30011, 3));
  const GptSamples samples = training(dataset, 2);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const Document stream = stream_of(epoch_of(samples, epoch));
    EXPECT_EQ(std::set<std::int32_t>(stream.begin(), stream.end()).size(), 2U * 45016 + 1);
  }
}

TEST(GptSamples, TheOneDocumentOfACorpusIsLeftOutNowhere) {
  const TemporaryFolder folder;
  const auto dataset = whole_numbered(folder, {1019});
  const GptSamples samples = training(dataset, 100);
  EXPECT_EQ(samples.samples_per_epoch(), 10);
  std::set<std::int32_t> seen;
  for (std::int64_t position = 0; position < 2000; ++position) {
    const Document tokens = sample_of(samples, position);
    for (std::size_t i = 1; i < tokens.size(); ++i) ASSERT_EQ(tokens[i], tokens[0] + static_cast<std::int32_t>(i));
    seen.insert(tokens.begin(), tokens.end());
  }
  EXPECT_EQ(seen.size(), 1019U);
}

TEST(GptSamples, APartOfExactlyOneSequenceIsEnough) {
  const TemporaryFolder folder;
  const auto dataset = whole_numbered(folder, {4, 5});
  const GptSamples samples = training(dataset, 8);
  EXPECT_EQ(samples.samples_per_epoch(), 1);
  EXPECT_EQ(sample_of(samples, 0).size(), 9U);
}

TEST(GptSamples, APartShorterThanASequenceIsReportedWithSizes) {
  const TemporaryFolder folder;
  const auto dataset = whole_numbered(folder, {290, 10});
  const auto parts = split_corpus(*dataset, parse_split("29,1"), kFileOrder);
  const auto message = message_of<UserError>([&] { GptSamples(dataset, parts[1], 10, SampleOrder::kSequential); });
  EXPECT_THAT(message, AllOf(HasSubstr("the validation part"), HasSubstr("corpus' has 10 of its 300 tokens"),
                             HasSubstr("--seq-length 10 needs 11"), HasSubstr("--split")));
  const auto empty = numbered_dataset(folder / "empty", {});
  EXPECT_THAT(message_of<UserError>([&] { training(empty, 1); }), HasSubstr("has 0 of its 0 tokens"));
}

// A run resumed by a later version must read on in the same order, so these values never change.
TEST(GptSamples, TheOrderIsTheSameForEver) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 40; ++i) lengths.push_back(i * 7 % 13);
  const GptSamples samples = training(whole_numbered(folder, lengths), 8, 1234);
  std::vector<std::int32_t> firsts;
  for (const std::int64_t position : {0, 1, 2, 30, 31, 1000}) firsts.push_back(sample_of(samples, position).front());
  EXPECT_THAT(firsts, ::testing::ElementsAre(195, 223, 184, 226, 229, 9));
}

// Checkpoints that carry no split seed were trained in file order. Every sample of it, in both orders, is the one that
// commit 1bb9fa8 read, the last one without another split; so the checksum never changes.
TEST(GptSamples, PartsInFileOrderReadWhatTheyReadBeforeThereWasAnotherOrder) {
  const TemporaryFolder folder;
  RandomSequence random(RandomStream{.seed = 17});
  Checksum checksum;
  for (const std::int64_t documents : {1, 2, 3, 40, 700}) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(documents));
    for (auto& length : lengths) length = static_cast<std::int64_t>(random.below(documents < 4 ? 200 : 25));
    lengths.back() += 40;
    const auto dataset = whole_numbered(folder, lengths);
    for (const CorpusPart& part : split_corpus(*dataset, std::vector<double>{7, 0, 2}, kFileOrder)) {
      if (part.tokens() < 10) continue;
      for (const SampleOrder order : {SampleOrder::kShuffled, SampleOrder::kSequential}) {
        const GptSamples samples(dataset, part, 9, order, 5);
        for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
          for (const Document& tokens : epoch_of(samples, epoch)) checksum.update(std::as_bytes(std::span(tokens)));
        }
      }
    }
  }
  EXPECT_EQ(checksum.digest(), "732d4bcad97e759b");
}

}  // namespace
}  // namespace teratron::testing
