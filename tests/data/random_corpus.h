// Samples of random parts of numbered corpora, in which a token is its own position.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "data/dataset_fixture.h"
#include "data/samples/gpt_samples.h"

namespace teratron::testing {

inline Document sample_of(const GptSamples& samples, std::int64_t position) {
  Document tokens(static_cast<std::size_t>(samples.seq_length()) + 1);
  samples.sample(position, tokens);
  return tokens;
}

struct RandomCorpus {
  std::shared_ptr<const IndexedDataset> dataset;
  CorpusPart part;
  std::int64_t seq_length;
};

// Parts of a corpus, of one document to some hundreds: runs in the middle of it, or drawn from all over it.
inline RandomCorpus random_corpus(const TemporaryFolder& folder, std::mt19937_64& random) {
  const auto below = [&](std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
  };
  while (true) {
    const auto dataset = numbered_dataset(folder / "corpus", random_lengths(random, 1 + below(1 + below(600)), 25));
    const SplitRule rule = below(2) == 0 ? kFileOrder : SplitRule{.seed = random()};
    const auto parts =
        split_corpus(*dataset, std::vector<double>{1.0 + static_cast<double>(below(9)), 20.0, 1.0}, rule);
    const std::int64_t seq_length = 1 + below(20);
    if (parts[1].tokens() > seq_length) return {dataset, parts[1], seq_length};
  }
}

// The tokens of a part's documents, one document after the other.
inline Document tokens_of(const IndexedDataset& dataset, const CorpusPart& part) {
  Document tokens;
  for (std::int64_t d = 0; d < part.documents(); ++d) {
    const TokenRange document = part.document(dataset, d);
    for (std::int64_t token = document.begin; token < document.end; ++token) {
      tokens.push_back(static_cast<std::int32_t>(token));
    }
  }
  return tokens;
}

}  // namespace teratron::testing
