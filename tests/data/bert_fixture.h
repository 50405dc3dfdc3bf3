// Shared by the tests of BERT's samples: corpora of sentences, and vocabularies whose tokens are of any kind.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "data/dataset_fixture.h"
#include "data/samples/bert_samples.h"

namespace teratron::testing {

inline void write_sentences(const std::filesystem::path& prefix, std::span<const std::vector<Document>> documents,
                            std::int64_t vocab_size) {
  IndexedDatasetWriter writer(prefix, vocab_size);
  for (const std::vector<Document>& document : documents) {
    for (const Document& sentence : document) writer.add_sequence(sentence);
    writer.end_document();
  }
  writer.commit();
}

constexpr std::int32_t kFirstOrdinary = 4;  // after [CLS], [SEP], [MASK] and [PAD]

// A vocabulary in which other tokens, too, are special or go on with a word, each drawn by itself.
inline BertTokens random_tokens(std::mt19937_64& random, std::int64_t vocab_size, double continues, double special) {
  BertTokens tokens{.classify = 0, .separate = 1, .mask = 2, .pad = 3, .vocab_size = vocab_size};
  std::bernoulli_distribution continues_word(continues), is_special(special);
  for (std::int64_t id = 0; id < vocab_size; ++id) {
    tokens.continues_word.push_back(continues_word(random));
    tokens.is_special.push_back(id < kFirstOrdinary || is_special(random));
  }
  tokens.is_special[kFirstOrdinary] = false;  // one at least is ordinary
  return tokens;
}

inline SampleBatch read_batch(const Samples& samples, SampleRange positions) {
  SampleBatch batch = samples.make_batch(positions.count);
  samples.read(positions, batch, 0);
  return batch;
}

inline void expect_same(const SampleBatch& a, const SampleBatch& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.token_types, b.token_types);
  EXPECT_EQ(a.key_lengths, b.key_lengths);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.label_weights, b.label_weights);
}

// Corpora whose tokens count on, 4, 5, 6, ..., so that every token tells where it came from; the vocabulary says what
// each of them is. Sentences and documents may be empty, and sentences longer than a sample.
struct RandomSentences {
  std::vector<std::vector<Document>> documents;
  std::int32_t end = kFirstOrdinary;  // one past the last token

  RandomSentences(std::mt19937_64& random, std::int64_t most_documents, std::int64_t most_sentences,
                  std::int64_t longest) {
    const auto up_to = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random); };
    documents.resize(static_cast<std::size_t>(up_to(most_documents)));
    for (auto& document : documents) {
      document.resize(static_cast<std::size_t>(up_to(most_sentences)));
      for (auto& sentence : document) {
        sentence.resize(static_cast<std::size_t>(up_to(longest)));
        for (auto& token : sentence) token = end++;
      }
    }
  }
};

}  // namespace teratron::testing
