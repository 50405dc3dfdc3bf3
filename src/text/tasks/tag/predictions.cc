#include "tasks/tag/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/json_string.h"

namespace teratron::tag {
namespace {

namespace fs = std::filesystem;
using Object = nlohmann::ordered_json;

std::string json_line(std::span<const custom::Row> words, std::span<const std::int32_t> labels,
                      std::span<const std::string> names) {
  Object texts = Object::array(), said = Object::array();
  for (std::size_t i = 0; i < words.size(); ++i) {
    texts.push_back(words[i].text);
    said.push_back(names[static_cast<std::size_t>(labels[i])]);
  }
  const Object line = {{std::string(kWordsKey), texts}, {std::string(kLabelsKey), said}};
  return json_text(line) + "\n";
}

std::string conll_lines(std::span<const custom::Row> words, std::span<const std::int32_t> labels,
                        std::span<const std::string> names) {
  std::string lines;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i].text;
    std::ranges::replace_if(
        word, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    lines += fmt::format("{}\t{}\n", word, names[static_cast<std::size_t>(labels[i])]);
  }
  return lines + "\n";
}

// Number of words of each sentence that has any: a blank line more or less does not matter.
std::vector<std::size_t> lengths_of(const Sentences& sentences) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i + 1 < sentences.begins.size(); ++i) {
    const std::size_t words = sentences.begins[i + 1] - sentences.begins[i];
    if (words > 0) lengths.push_back(words);
  }
  return lengths;
}

}  // namespace

void write_predictions(const fs::path& path, const Sentences& sentences, std::span<const std::int32_t> labels,
                       std::span<const std::string> names) {
  auto* const lines = is_json_file(path) ? json_line : conll_lines;
  std::string text;
  for (std::size_t i = 0; i + 1 < sentences.begins.size(); ++i) {
    const std::size_t begin = sentences.begins[i], count = sentences.begins[i + 1] - begin;
    text += lines(std::span(sentences.words.rows).subspan(begin, count), labels.subspan(begin, count), names);
  }
  write_file_atomically(path, text);
}

custom::Table read_predictions(const fs::path& path, const Sentences& data,
                               const std::vector<std::string>& label_names) {
  TaskReading reading;
  reading.text_column = kWordsKey;
  reading.label_column = kLabelsKey;
  reading.label_names = label_names;
  Sentences said = read_sentences(std::span(&path, 1), reading, /*need_words=*/false);
  const std::vector<std::size_t> there = lengths_of(said), needed = lengths_of(data);
  if (there.size() != needed.size()) {
    throw_user_error("'{}' has {} with words, and the data {}; predict all of the data, and nothing else",
                     path.string(), counted(std::ssize(there), "sentence"), needed.size());
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < there.size(); first += needed[i], ++i) {
    if (there[i] == needed[i]) continue;
    throw_user_error("{}: a sentence of {}, which has {} in the data ({})", said.words.place(said.words.rows[first]),
                     counted(static_cast<std::int64_t>(there[i]), "word"), needed[i],
                     data.words.place(data.words.rows[first]));
  }
  for (const custom::Row& row : said.words.rows) {
    if (row.label.empty()) throw_user_error("{}: a word without a predicted label", said.words.place(row));
  }
  return std::move(said.words);
}

}  // namespace teratron::tag
