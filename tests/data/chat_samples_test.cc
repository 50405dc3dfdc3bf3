// Samples of chats: every conversation whole, apart from others, and its answers' tokens as the only targets.
#include "data/samples/chat_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using Turns = std::vector<Document>;  // in turn read and learned

struct Chats {
  std::vector<Turns> chats;
  std::shared_ptr<const IndexedDataset> dataset;
  CorpusPart part;
};

Chats random_chats(const TemporaryFolder& folder, std::mt19937_64& random, std::int64_t count, int longest) {
  Chats made;
  IndexedDatasetWriter writer(folder / "chats", 1 << 20);
  std::int32_t next = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    Turns& turns = made.chats.emplace_back(1 + random() % 5);
    for (Document& turn : turns) {
      turn.resize(random() % static_cast<std::uint64_t>(longest));
      for (auto& token : turn) token = next++;
      writer.add_sequence(turn);
    }
    writer.end_document();
  }
  writer.commit(identity_of(byte_tokenizer(), "bytes"), SequenceUnit::kTurn);
  made.dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder / "chats"));
  made.part = split_corpus(*made.dataset, std::vector<double>{1}, kFileOrder).front();
  return made;
}

// A target that is learned: its token, the one before it, and how many tokens of its conversation come before.
struct Target {
  std::int32_t token, input, before;
  auto operator<=>(const Target&) const = default;
};

std::vector<Target> expected_targets(const std::vector<Turns>& chats, std::int64_t seq_length) {
  std::vector<Target> targets;
  for (const Turns& turns : chats) {
    Document tokens;
    std::vector<bool> learned;
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      tokens.insert(tokens.end(), turns[turn].begin(), turns[turn].end());
      learned.resize(tokens.size(), turn % 2 == 1);
    }
    const std::size_t size = std::min(tokens.size(), static_cast<std::size_t>(seq_length) + 1);
    for (std::size_t i = 1; i < size; ++i) {
      if (learned[i]) targets.push_back({tokens[i], tokens[i - 1], static_cast<std::int32_t>(i)});
    }
  }
  return targets;
}

TEST(ChatSamples, AnEpochHasEveryTargetOnceInItsOwnConversation) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    const TemporaryFolder folder;
    const auto seq_length = static_cast<std::int64_t>(4 + random() % 40);
    const Chats made = random_chats(folder, random, 1 + static_cast<std::int64_t>(random() % 60), 12);
    std::vector<Target> expected = expected_targets(made.chats, seq_length);
    if (expected.empty()) {
      EXPECT_THROW(ChatSamples(made.dataset, made.part, seq_length, SampleOrder::kShuffled), UserError);
      continue;
    }
    const SampleOrder order = round % 2 == 0 ? SampleOrder::kShuffled : SampleOrder::kSequential;
    const ChatSamples samples(made.dataset, made.part, seq_length, order, random());
    const std::int64_t count = samples.samples_per_epoch();
    for (const std::int64_t epoch : {0, 1, 5}) {
      SampleBatch batch = samples.make_batch(count + 1);
      samples.read({epoch * count, count}, batch, 1);
      std::vector<Target> found;
      for (std::int64_t at = seq_length; at < (count + 1) * seq_length; ++at) {
        const auto i = static_cast<std::size_t>(at);
        const std::int32_t before = batch.position_ids[i] + 1;
        EXPECT_EQ(batch.first_keys[i] + batch.position_ids[i], at % seq_length);
        if (batch.weights[i] == 0) continue;
        EXPECT_EQ(batch.weights[i], 1);
        found.push_back({batch.targets[i], batch.ids[i], before});
        // The conversation stands whole before its target: tokens are consecutive numbers.
        EXPECT_EQ(batch.ids[i - static_cast<std::size_t>(before) + 1], batch.targets[i] - before);
      }
      EXPECT_EQ(samples.total_weights({epoch * count, count}).targets, static_cast<double>(found.size()));
      std::ranges::sort(found);
      std::ranges::sort(expected);
      EXPECT_EQ(found, expected);
    }
  }
}

// Best fit, the longest first, by looking at every sample.
std::int64_t packs_by_looking(std::vector<std::int64_t> inputs, std::int64_t seq_length) {
  std::ranges::sort(inputs, std::greater<>());
  std::vector<std::int64_t> rooms;
  for (const std::int64_t size : inputs) {
    auto best = rooms.end();
    for (auto room = rooms.begin(); room != rooms.end(); ++room) {
      if (*room >= size && (best == rooms.end() || *room < *best)) best = room;
    }
    best == rooms.end() ? rooms.push_back(seq_length - size) : void(*best -= size);
  }
  return std::ssize(rooms);
}

TEST(ChatSamples, ConversationsArePackedByBestFit) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    const TemporaryFolder folder;
    const std::int64_t seq_length = 30;
    const Chats made = random_chats(folder, random, 80, 12);
    std::vector<std::int64_t> inputs;
    for (const Turns& turns : made.chats) {
      if (expected_targets({turns}, seq_length).empty()) continue;
      std::int64_t tokens = 0;
      for (const Document& turn : turns) tokens += std::ssize(turn);
      inputs.push_back(std::min(tokens - 1, seq_length));
    }
    const ChatSamples samples(made.dataset, made.part, seq_length, SampleOrder::kShuffled);
    EXPECT_EQ(samples.samples_per_epoch(), packs_by_looking(inputs, seq_length));
    EXPECT_EQ(samples.counts().conversations - samples.counts().empty, std::ssize(inputs));
  }
}

TEST(ChatSamples, CutsAreReported) {
  const TemporaryFolder folder;
  IndexedDatasetWriter writer(folder / "chats", 1000);
  for (const Turns& turns : {Turns{{1, 2}, {3, 4, 5, 6, 7}}, Turns{{1, 2, 3, 4, 5, 6}, {7}}, Turns{{1}, {2, 3}}}) {
    for (const Document& turn : turns) writer.add_sequence(turn);
    writer.end_document();
  }
  writer.commit(identity_of(byte_tokenizer(), "bytes"), SequenceUnit::kTurn);
  const auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder / "chats"));
  const ChatSamples samples(dataset, split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front(), 4,
                            SampleOrder::kSequential);
  EXPECT_EQ(samples.left_out(),
            "2 conversations in 2 samples of 4 tokens, 25.0 % of them padding\n"
            "2 longer, without 4 tokens at the end, 3 of them to be learned\n"
            "1 without a word to learn left out");
  EXPECT_EQ(samples.source(0), "document 0 of '" + (folder / "chats").string() + "', tokens 0 to 4");
}

TEST(ChatSamples, CorporaOfOneSortAreTaken) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  random_chats(folder, random, 3, 5);
  write_dataset(folder / "texts", {{1, 2, 3}}, 10);
  EXPECT_THAT(message_of<UserError>([&] { require_whole_documents(folder / "chats"); }), ::testing::HasSubstr("--sft"));
  EXPECT_THAT(message_of<UserError>([&] { require_chats(folder / "texts"); }), ::testing::HasSubstr("data chat"));
  require_chats(folder / "chats");
}

}  // namespace
}  // namespace teratron::testing
