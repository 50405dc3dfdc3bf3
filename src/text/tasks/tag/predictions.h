// Predicted labels of words, in the formats that sentences are read in:
//
//   {"tokens": ["EU", "rejects"], "ner_tags": ["B-ORG", "O"]}      files named as JSON
//   EU<tab>B-ORG                                                   others; a blank line after each sentence
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tasks/tag/sentences.h"

namespace teratron::tag {

// Writes the sentences with `labels`, of each word its index in `names`; whole or not at all. In CoNLL's form a word's
// tabs and line ends become spaces. EnvironmentError: it cannot be written.
void write_predictions(const std::filesystem::path& path, const Sentences& sentences,
                       std::span<const std::int32_t> labels, std::span<const std::string> names);

// Reads the predictions of the words of `data`. `label_names`: names of labels that are numbers, from 0. UserError: as
// read_sentences; other numbers of words than in `data`; a word without a label.
custom::Table read_predictions(const std::filesystem::path& path, const Sentences& data,
                               const std::vector<std::string>& label_names = {});

}  // namespace teratron::tag
