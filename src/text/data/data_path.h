// --data-path: the corpora that a command names, in one grammar.
//   a                one corpus
//   a b c            one corpus in three shards, read as one file
//   0.7 a 0.3 b      a blend: 70 % of the samples come from a, 30 % from b
// A name may be a pattern with * ? or [...] that stands for all matching shards in byte order. In a blend a corpus is
// one word, and its shards are joined by commas: 0.7 'a-*' 0.3 b is 0.7 a-1,a-2 0.3 b. A word that is a number is a
// weight; a corpus called 7 is written ./7.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/faults.h"
#include "data/indexed/indexed_dataset.h"

namespace teratron {

// Faults of this flag's words: a weight without a corpus or below zero, weights for some corpora only. No words are no
// fault.
Faults data_path_faults(Flag flag, std::span<const std::string> words);
// For commands that read one corpus: weights are a fault.
Faults one_corpus_faults(Flag flag, std::span<const std::string> words);

// Replaces patterns by names, so that a record of the words keeps its meaning when files are added. A pattern without
// matches stays.
std::vector<std::string> without_patterns(std::span<const std::string> words);

// Makes a path absolute, without redundant "." and ".."; an empty path stays empty.
std::filesystem::path absolute_name(const std::filesystem::path& name);
// Makes all names independent of the working directory.
std::vector<std::string> with_absolute_names(std::span<const std::string> words);

// The weights of a blend, in order; empty if the words have none.
std::vector<double> weights_of(std::span<const std::string> words);

struct WeightedCorpus {
  double weight = 1;  // above zero
  std::shared_ptr<const IndexedDataset> dataset;
};

// The corpora of words without faults, at least one, in order. Those of weight 0 are not opened. UserError: a shard
// that is named twice; as IndexedDataset::open.
std::vector<WeightedCorpus> open_corpora(std::span<const std::string> words);

// As open_corpora, for words without weights.
std::shared_ptr<const IndexedDataset> open_corpus(std::span<const std::string> words);

}  // namespace teratron
