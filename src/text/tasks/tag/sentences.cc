#include "tasks/tag/sentences.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/json_fields.h"
#include "base/json_string.h"
#include "data/text/content.h"
#include "data/text/document_reader.h"
#include "data/text/input_files.h"
#include "data/text/json_members.h"
#include "data/text/text_list.h"

namespace teratron::tag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void end_sentence(Sentences& sentences) { sentences.begins.push_back(sentences.words.rows.size()); }

// Whether this is CoNLL 2003's mark between documents, which is no word.
bool is_document_start(std::string_view word) { return word.starts_with("-DOCSTART-"); }

std::vector<std::string_view> cells_of(std::string_view line) {
  const std::string_view separators = line.find('\t') != std::string_view::npos ? "\t" : " ";
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t end = std::min(line.find_first_of(separators), line.size());
    if (end > 0 || separators == "\t") cells.push_back(line.substr(0, end));
    if (end == line.size()) return cells;
    line.remove_prefix(end + 1);
  }
}

// Columns of a CoNLL file.
struct ConllColumns {
  std::size_t count = 0, word = 0;
  std::optional<std::size_t> label;
};

// Index of the column that a flag names, in a file of `count` columns.
std::size_t column_of(const std::string& given, std::string_view flag, std::size_t count, const std::string& place) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  if (error != std::errc() || end != given.data() + given.size()) {
    throw_user_error("{}: --{} is '{}', and columns of a CoNLL file have numbers, from 1", place, flag, given);
  }
  if (number < 1 || number > count) {
    throw_user_error("{}: --{} is {}, and {} counted from 1", place, flag, number,
                     count == 1 ? "there is 1 column," : fmt::format("there are {} columns,", count));
  }
  return number - 1;
}

ConllColumns columns_of(std::size_t count, const TaskReading& reading, const std::string& place) {
  ConllColumns columns{.count = count};
  if (reading.text_column != kWordsKey) columns.word = column_of(reading.text_column, "text-column", count, place);
  if (reading.label_column == kLabelsKey) {
    if (columns.word != count - 1) columns.label = count - 1;
  } else if (!reading.label_column.empty()) {
    columns.label = column_of(reading.label_column, "label-column", count, place);
  }
  return columns;
}

void add_conll(const fs::path& file, const TaskReading& reading, Sentences& sentences) {
  const std::string text = read_decompressed(file);
  require_text(text, 0, file);
  require_utf8(text, file, "");
  std::optional<ConllColumns> columns;
  std::vector<custom::Row>& rows = sentences.words.rows;
  const auto end_words = [&] {
    if (rows.size() > sentences.begins.back()) end_sentence(sentences);
  };
  std::int64_t line = 0;
  for (const std::string_view row : lines_of(without_byte_order_mark(text))) {
    ++line;
    if (is_blank(row) || is_document_start(row)) {
      end_words();
      continue;
    }
    const std::vector<std::string_view> cells = cells_of(row);
    if (!columns) columns = columns_of(cells.size(), reading, place_of(file, line));
    if (cells.size() != columns->count) {
      throw_user_error(
          "{}: {}, where the file's first line has {}; write a word with its columns a line, and a blank line between "
          "sentences (comments, such as CoNLL-U's \"# text = ..\", are no words: leave them out)",
          place_of(file, line), counted(std::ssize(cells), "column"), columns->count);
    }
    rows.push_back({.text = std::string(cells[columns->word]),
                    .label = std::string(columns->label ? without_ascii_spaces(cells[*columns->label]) : ""),
                    .line = line,
                    .file = sentences.words.files.size() - 1});
  }
  end_words();
}

// The list under a key; null where there is none.
Json list_of(std::string_view object, const std::string& key, const std::string& place) {
  const std::optional<std::string_view> value = key.empty() ? std::nullopt : find_member(object, key);
  if (!value || *value == "null") return nullptr;
  Json list = parse_fitted<Json>(*value);
  if (!list.is_array()) throw_user_error("{}: \"{}\" is no list; write one with an element a word", place, key);
  return list;
}

// Label of a word by its JSON value, a name or a number; empty: it has none.
std::string label_of(const Json& value, const TaskReading& reading, const std::string& place) {
  if (value.is_null() || value == -100) return "";  // transformers' mark of what has no loss
  if (value.is_string()) return value.get<std::string>();
  const std::vector<std::string>& names = reading.label_names.empty() ? reading.labels.names : reading.label_names;
  if (!value.is_number_integer()) {
    throw_user_error("{}: \"{}\" has {}, which is no label; a name or a number is one", place, reading.label_column,
                     json_text(value));
  }
  if (names.empty()) {
    throw_user_error("{}: \"{}\" has numbers; name them in their order, from 0 on: --label-names O B-PER I-PER ..",
                     place, reading.label_column);
  }
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= names.size()) {
    throw_user_error(
        "{}: \"{}\" has the number {}, and there are {} names, counted from 0 ({}); --label-names names all", place,
        reading.label_column, value.dump(), names.size(), fmt::join(names, ", "));
  }
  return names[value.get<std::size_t>()];
}

void add_json(const fs::path& file, const TaskReading& reading, bool need_words, Sentences& sentences) {
  const std::vector<std::string> texts = {reading.text_column, reading.label_column};
  custom::visit_objects(file, texts, [&](std::string_view object, const std::string& place, std::int64_t line) {
    const Json words = list_of(object, reading.text_column, place);
    const Json labels = list_of(object, reading.label_column, place);
    if (words.is_null() && need_words) {
      throw_user_error("{}: there is no list of words under \"{}\"; its keys are {} (--text-column names another)",
                       place, reading.text_column, custom::keys_of(object));
    }
    if (!words.is_null() && !labels.is_null() && words.size() != labels.size()) {
      throw_user_error("{}: {} under \"{}\" and {} under \"{}\"; each word has one", place,
                       counted(std::ssize(words), "word"), reading.text_column, counted(std::ssize(labels), "label"),
                       reading.label_column);
    }
    for (std::size_t i = 0; i < std::max(words.size(), labels.size()); ++i) {
      if (!words.is_null() && !words[i].is_string()) {
        throw_user_error("{}: element {} of \"{}\", counted from 0, is no text", place, i, reading.text_column);
      }
      if (!words.is_null() && is_document_start(words[i].get_ref<const std::string&>())) continue;
      sentences.words.rows.push_back({.text = words.is_null() ? std::string() : words[i].get<std::string>(),
                                      .label = labels.is_null() ? std::string() : label_of(labels[i], reading, place),
                                      .line = line,
                                      .file = sentences.words.files.size() - 1});
    }
    const bool has_words = sentences.words.rows.size() > sentences.begins.back();
    if (has_words || words.is_null() || words.empty()) end_sentence(sentences);
  });
}

}  // namespace

bool is_json_file(const fs::path& file) { return content_ending(file) == ".json" || is_named_json_lines(file); }

bool is_conll_file(const fs::path& file) { return !is_json_file(file) && content_ending(file) != ".parquet"; }

Sentences read_sentences(std::span<const fs::path> files, const TaskReading& reading, bool need_words) {
  Sentences sentences;
  for (const fs::path& file : files) {
    const std::int64_t before = sentences.count();
    sentences.words.files.push_back(file);
    if (is_conll_file(file)) {
      add_conll(file, reading, sentences);
    } else {
      add_json(file, reading, need_words, sentences);
    }
    if (sentences.count() == before) throw_user_error("'{}' has no sentence; write a word a line", file.string());
  }
  return sentences;
}

}  // namespace teratron::tag
