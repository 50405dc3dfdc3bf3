// Documents that share a sample, against Megatron-LM's definition: behind each end-of-document token at place i, tokens
// beyond i do not see those up to i, positions begin at 0, and the target at i itself may be left out.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/dataset_fixture.h"
#include "data/samples/gpt_samples.h"

namespace teratron::testing {
namespace {

constexpr std::int32_t kEnd = 3;

// Documents of tokens 0 .. 5, so that some ends lie in the middle of what the corpus calls one.
std::shared_ptr<const IndexedDataset> corpus_with_ends(const std::filesystem::path& prefix, std::mt19937_64& random) {
  std::vector<Document> documents(20);
  for (Document& document : documents) {
    document.resize(1 + random() % 30);
    for (auto& token : document) token = static_cast<std::int32_t>(random() % 6);
  }
  write_dataset(prefix, documents, 6);
  return std::make_shared<const IndexedDataset>(IndexedDataset::open(prefix));
}

// sees[query][key] of one sample.
std::vector<std::vector<bool>> mask_by_definition(const Document& tokens) {
  std::vector<std::vector<bool>> sees(tokens.size(), std::vector<bool>(tokens.size()));
  for (std::size_t query = 0; query < tokens.size(); ++query) {
    for (std::size_t key = 0; key <= query; ++key) sees[query][key] = true;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != kEnd) continue;
    for (std::size_t query = i + 1; query < tokens.size(); ++query) {
      std::fill_n(sees[query].begin(), i + 1, false);
    }
  }
  return sees;
}

Document positions_by_definition(const Document& tokens) {
  Document positions(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) positions[t] = static_cast<std::int32_t>(t);
  std::int32_t before = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != kEnd) continue;
    const auto next = static_cast<std::int32_t>(i) + 1;
    for (std::size_t t = i + 1; t < tokens.size(); ++t) positions[t] -= next - before;
    before = next;
  }
  return positions;
}

TEST(DocumentsInASample, AreKeptApartAsMegatronDefinesIt) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    const auto dataset = corpus_with_ends(folder / "corpus", random);
    const CorpusPart part = split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front();
    const auto length = static_cast<std::int64_t>(1 + random() % 12);
    if (part.tokens() <= length) continue;
    const DocumentOptions options{.reset_attention_mask = random() % 2 == 0,
                                  .reset_position_ids = random() % 2 == 0,
                                  .eod_mask_loss = random() % 2 == 0,
                                  .end_token = kEnd};
    const GptSamples samples(dataset, part, length, SampleOrder::kShuffled, random(), options);
    SampleBatch batch = samples.make_batch(3);
    const auto first = static_cast<std::int64_t>(random() % 50);
    samples.read({first, 2}, batch, 0);
    samples.read({first + 2, 1}, batch, 2);
    ASSERT_EQ(batch.first_keys.size(), options.reset_attention_mask ? batch.ids.size() : 0);
    ASSERT_EQ(batch.position_ids.size(), options.reset_position_ids ? batch.ids.size() : 0);
    double total = 0;
    for (std::int64_t sample = 0; sample < 3; ++sample) {
      const auto begin = static_cast<std::size_t>(sample * length), tokens = static_cast<std::size_t>(length);
      const Document ids(batch.ids.begin() + sample * length, batch.ids.begin() + (sample + 1) * length);
      const auto sees = mask_by_definition(ids);
      const Document positions = positions_by_definition(ids);
      for (std::size_t query = 0; query < tokens; ++query) {
        for (std::size_t key = 0; key <= query && options.reset_attention_mask; ++key) {
          ASSERT_EQ(static_cast<std::int32_t>(key) >= batch.first_keys[begin + query], sees[query][key]);
        }
        if (options.reset_position_ids) {
          ASSERT_EQ(batch.position_ids[begin + query], positions[query]);
        }
        const float weight = options.eod_mask_loss && ids[query] == kEnd ? 0 : 1;
        ASSERT_EQ(batch.weights[begin + query], weight);
        total += weight;
      }
    }
    ASSERT_EQ(samples.total_weights({first, 3}).targets, total);
  }
}

TEST(DocumentsInASample, ChangeNoToken) {
  const TemporaryFolder folder;
  std::mt19937_64 random(2);
  const auto dataset = corpus_with_ends(folder / "corpus", random);
  const CorpusPart part = split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front();
  const GptSamples plain(dataset, part, 7, SampleOrder::kShuffled, 5);
  const GptSamples apart(dataset, part, 7, SampleOrder::kShuffled, 5, {true, true, true, kEnd});
  SampleBatch expected = plain.make_batch(40), actual = apart.make_batch(40);
  plain.read({3, 40}, expected, 0);
  apart.read({3, 40}, actual, 0);
  EXPECT_EQ(actual.ids, expected.ids);
  EXPECT_EQ(actual.targets, expected.targets);
}

}  // namespace
}  // namespace teratron::testing
