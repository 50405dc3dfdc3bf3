// Measures how much of a test set is in a training set, by n-grams of words in both. Texts without words have no
// n-grams, so they are neither counted nor found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "data/text/document_reader.h"

namespace teratron {

struct OverlapOptions {
  std::vector<std::filesystem::path> training, test;  // as find_input_files takes them
  TextFormat format = TextFormat::kAuto;
  std::string text_key = "text";
  std::string test_text_key;      // for the test set; empty: as text_key
  std::int64_t ngram = 8;         // words (words.h); a shorter text is one n-gram of all its words
  double false_positives = 1e-3;  // of the Bloom filter
  bool exact = false;             // no filter: memory holds the test set's n-grams
  std::int64_t batch_bytes = std::int64_t{8} << 20;
  std::function<void(double share)> progress;
};

struct OverlapCounts {
  std::int64_t training_documents = 0, test_documents = 0;
  std::int64_t training_ngrams = 0;                      // read, with repetitions
  std::int64_t test_ngrams = 0;                          // with repetitions
  std::int64_t found = 0;                                // test n-grams that are in the training set
  std::int64_t distinct_ngrams = 0, distinct_found = 0;  // of the test set, each counted once
  std::int64_t filter_bytes = 0;                         // 0 if exact

  double share() const { return test_ngrams == 0 ? 0 : static_cast<double>(found) / static_cast<double>(test_ngrams); }
  double distinct_share() const {
    return distinct_ngrams == 0 ? 0 : static_cast<double>(distinct_found) / static_cast<double>(distinct_ngrams);
  }
};

// Without `exact` the training set's n-grams go into a Bloom filter (18 to 40 bits for each different one, more for
// fewer errors). It counts too many as found: on average that share of the n-grams that are not there. With `exact`
// memory holds 9 bytes for each n-gram of the test set, however large the training set is. The counts do not depend on
// the threads. UserError: as DocumentReader; a bad line; no n-gram in the test set.
OverlapCounts overlap(const OverlapOptions& options);

}  // namespace teratron
