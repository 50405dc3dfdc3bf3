// --data-path: the corpora that a command names, by one grammar.
//   a                one corpus
//   a b c            one corpus in three shards, read as if they were one file
//   0.7 a 0.3 b      a blend: 70 % of the samples come from a, 30 % from b
// A name may be a pattern with * ? or [...] that stands for all the shards that match it, ordered by their bytes. In a
// blend, a corpus is one word, and its shards are joined by commas: 0.7 'a-*' 0.3 b is 0.7 a-1,a-2 0.3 b. A word that
// is a number is a weight; a corpus that is called 7 is given as ./7.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/faults.h"
#include "data/indexed/indexed_dataset.h"

namespace teratron {

// What is wrong with the words of this flag: a weight without a corpus or below zero, some corpora with weights and
// some without. No words are no fault.
Faults data_path_faults(Flag flag, std::span<const std::string> words);
// For commands that read one corpus: weights are a fault.
Faults one_corpus_faults(Flag flag, std::span<const std::string> words);

// The same words with names for patterns, so that what is kept of them means the same when there are more files. What
// nothing matches stays.
std::vector<std::string> without_patterns(std::span<const std::string> words);

// From the root, and without "." and ".." where that names the same; nothing for nothing.
std::filesystem::path absolute_name(const std::filesystem::path& name);
// The same words, of which names do not depend on the working directory any more.
std::vector<std::string> with_absolute_names(std::span<const std::string> words);

// Those of a blend, in their order; none where the words have no weights.
std::vector<double> weights_of(std::span<const std::string> words);

struct WeightedCorpus {
  double weight = 1;  // above zero
  std::shared_ptr<const IndexedDataset> dataset;
};

// The corpora of words without faults, at least one, in their order; those of weight 0 are left out, unopened.
// UserError: a shard that is named twice; as IndexedDataset::open.
std::vector<WeightedCorpus> open_corpora(std::span<const std::string> words);

// As open_corpora, of words without weights.
std::shared_ptr<const IndexedDataset> open_corpus(std::span<const std::string> words);

}  // namespace teratron
