// Sentences whose words have labels: CoNLL files, or JSON lines, by the ending of their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/custom/table.h"

namespace teratron::tag {

// Default columns: keys of JSON lines, as in Hugging Face's data sets. In CoNLL files they stand for the first column
// and the last.
inline constexpr std::string_view kWordsKey = "tokens", kLabelsKey = "ner_tags";

struct Sentences {
  custom::Table words;                    // a row for each; an empty label: it has none
  std::vector<std::size_t> begins = {0};  // [sentences + 1]: the first word of each, and the end of the last

  std::int64_t count() const { return std::ssize(begins) - 1; }
};

// Reads all sentences of the files, plain or compressed (gzip, zstd).
//
// `.jsonl`, `.ndjson`, `.json` (an array, too) and `.parquet` hold objects with a list of words, and perhaps one of as
// many labels: names, or numbers from 0 of reading.label_names (of reading.labels where that is empty); null and -100
// are no label. `need_words` = false takes objects of labels alone. A word that begins with -DOCSTART- is none, and a
// sentence of nothing else is left out.
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

// Whether a file's name ends as that of a JSON file.
bool is_json_file(const std::filesystem::path& file);
// Whether a file's name makes it a CoNLL file, whose columns go by numbers.
bool is_conll_file(const std::filesystem::path& file);

}  // namespace teratron::tag
