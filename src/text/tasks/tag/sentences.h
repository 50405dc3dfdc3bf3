// Sentences whose words have labels: CoNLL files, or JSON lines, by the ending of their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/classify/table.h"

namespace teratron::tag {

// The columns that are read unless the flags name others: keys of JSON lines, as Hugging Face's data sets have them. In
// CoNLL files they stand for the first column, and for the last.
inline constexpr std::string_view kWordsKey = "tokens", kLabelsKey = "ner_tags";

struct Sentences {
  classify::Table words;                  // a row for each; an empty label: it has none
  std::vector<std::size_t> begins = {0};  // [sentences + 1]: the first word of each, and the end of the last

  std::int64_t count() const { return std::ssize(begins) - 1; }
};

// Reads all sentences of the files, plain or compressed (gzip, zstd).
//
// `.jsonl`, `.ndjson`, `.json` (an array, too) and `.parquet` hold objects with a list of words, and perhaps one of as
// many labels: names, numbers that count reading.label_names (those of reading.labels where that is empty), or null and
// -100, which are none. `need_words` = false takes objects of labels alone. A word that begins with -DOCSTART- is none,
// and a sentence of nothing else is left out.
//
// Any other ending is CoNLL's: a word a line, its columns between tabs, or in lines without one between spaces; a
// sentence ends at a blank line, or at one that begins with -DOCSTART-. text_column and label_column are numbers of
// columns, from 1. A file of one column has no labels, and neither has any if label_column is empty.
//
// UserError, with file and line: a column that is not there, other numbers of columns than in the file's first line,
// another number of labels than of words, a word that is no text, a number without a name, text that is not UTF-8, a
// file without a sentence.
Sentences read_sentences(std::span<const std::filesystem::path> files, const TaskReading& reading,
                         bool need_words = true);

// Whether a file's name says that it holds JSON.
bool is_json_file(const std::filesystem::path& file);
// Whether a file's name makes it a CoNLL file, whose columns are numbers.
bool is_conll_file(const std::filesystem::path& file);

}  // namespace teratron::tag
