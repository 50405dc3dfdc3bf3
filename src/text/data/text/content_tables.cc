// Tables and settings as text, recognised by the shape of all their lines, or by their name.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "data/text/content_kinds.h"

namespace teratron::content {
namespace {

constexpr std::size_t kMostRecords = 64;  // examined

bool is_alphanumeric(char c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '_'; }
bool is_high(char c) { return static_cast<signed char>(c) < 0; }

using Record = std::vector<std::string_view>;

struct Records {
  std::vector<Record> whole;
  Record cut;  // the record that the text's end cuts off
  bool cut_in_quotes = false;
};

// Records as in RFC 4180: quoted fields may hold the separator and line ends. None if quotes are misplaced.
Records records_of(std::string_view text, char separator, bool is_all) {
  Records records;
  Record record;
  const auto cut_at = [&](std::size_t begin, bool in_quotes) {
    record.push_back(text.substr(begin));
    records.cut = std::move(record);
    records.cut_in_quotes = in_quotes;
    return records;
  };
  for (std::size_t at = 0, begin = 0; records.whole.size() < kMostRecords; ++at) {
    if (at < text.size() && at == begin && text[at] == '"') {
      do {
        at = text.find('"', at + 1);
        if (at == text.npos) return is_all ? Records{} : cut_at(begin, true);
        ++at;
      } while (at < text.size() && text[at] == '"');
      if (at < text.size() && text[at] != separator && text[at] != '\n' && text[at] != '\r') return {};
    }
    const bool is_end = at >= text.size();
    if (!is_end && text[at] != separator && text[at] != '\n') continue;
    if (is_end && !is_all) return cut_at(begin, false);
    std::string_view field = text.substr(begin, std::min(at, text.size()) - begin);
    if (field.ends_with('\r')) field.remove_suffix(1);
    record.push_back(field);
    begin = at + 1;
    if (!is_end && text[at] == separator) continue;
    if (record.size() > 1 || !record[0].empty()) records.whole.push_back(std::move(record));
    record.clear();
    if (is_end) break;
  }
  return records;
}

bool have_equal_fields(const std::vector<Record>& records) {
  return std::ranges::all_of(records, [&](const Record& one) { return one.size() == records[0].size(); });
}

std::string_view without_quotes(std::string_view field) {
  return field.size() > 1 && field.starts_with('"') && field.ends_with('"') ? field.substr(1, field.size() - 2) : field;
}

// Whether a field is a column's name: a few words, no sentence.
bool is_column_name(std::string_view field) {
  field = without_quotes(field);
  constexpr std::size_t kLongest = 64;
  const auto begins = [](char c) { return is_alphanumeric(c) || is_high(c); };
  if (field.starts_with('#')) field.remove_prefix(1);
  if (field.empty() || field.size() > kLongest || !begins(field.front())) return false;
  if (!begins(field.back()) && field.back() != ')') return false;
  const auto open = std::ranges::count(field, '('), closed = std::ranges::count(field, ')');
  return open == closed && std::ranges::all_of(field, [&](char c) {
           return begins(c) || std::string_view(" -.()#/%").find(c) != std::string_view::npos;
         });
}

bool is_number(std::string_view field) {
  field = without_quotes(field);
  return field.find_first_of("0123456789") != field.npos && field.find_first_not_of("0123456789.-+eE") == field.npos;
}

// Whether a column's name contains a word that data sets use for columns.
bool is_known_name(std::string_view field) {
  static constexpr auto kKnown = std::to_array<std::string_view>(
      {"id",        "ids",        "idx",         "index",      "text",     "texts",   "sentence", "sentence1",
       "sentence2", "label",      "labels",      "title",      "content",  "body",    "url",      "question",
       "answer",    "prompt",     "response",    "score",      "source",   "target",  "src",      "tgt",
       "date",      "author",     "name",        "category",   "language", "lang",    "review",   "comment",
       "message",   "document",   "doc",         "article",    "summary",  "context", "premise",  "key",
       "value",     "hypothesis", "instruction", "completion", "input",    "output",  "class"});
  std::string word;
  for (std::size_t i = 0; i <= field.size(); ++i) {
    const char c = i < field.size() ? field[i] : ' ';
    if (is_alphanumeric(c) && c != '_') {
      word.push_back(ascii_lower(c));
      continue;
    }
    if (std::ranges::find(kKnown, word) != kKnown.end()) return true;
    word.clear();
  }
  return false;
}

// Whether fields are names of columns. The first may be empty if rows are numbered, the last if lines end in a
// separator.
class Header {
 public:
  explicit Header(const Record& record) : columns_(record) {
    for (std::size_t i = 0; i < record.size(); ++i) {
      std::string_view name = record[i];
      is_spaced_ = is_spaced_ || (i > 0 && name.starts_with(' '));
      name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
      if (name.empty() && (i == 0 || i + 1 == record.size())) continue;
      names_.push_back(name);
    }
    std::ranges::sort(names_);
    is_valid_ = !names_.empty() && (names_.size() > 1 || record[0].empty()) &&
                std::ranges::all_of(names_, is_column_name) && std::ranges::adjacent_find(names_) == names_.end();
  }

  bool is_valid() const { return is_valid_; }
  // Whether separators are followed by spaces, as in prose.
  bool is_spaced() const { return is_spaced_; }
  bool is_known() const { return std::ranges::any_of(names_, is_known_name); }
  std::int64_t most_words() const {
    std::int64_t most = 0;
    for (const std::string_view name : names_) most = std::max<std::int64_t>(most, 1 + std::ranges::count(name, ' '));
    return most;
  }
  bool is_number(std::size_t column) const { return content::is_number(columns_[column]); }

 private:
  const Record& columns_;
  Record names_;
  bool is_valid_ = false, is_spaced_ = false;
};

// Whether the records below a header look like rows: many columns, quotes, numbers or long texts. Lists of words and
// lines of code also have equally many separators.
bool are_rows(const Header& header, const std::vector<Record>& records) {
  constexpr std::size_t kManyColumns = 4, kLongText = 24;
  const auto rows = std::span(records).subspan(1);
  if (rows.empty()) return false;
  if (records[0].size() >= kManyColumns) return true;
  for (std::size_t column = 0; column < records[0].size(); ++column) {
    std::size_t numbers = 0, bytes = 0;
    for (const Record& row : rows) {
      if (row[column].starts_with('"')) return true;
      numbers += is_number(row[column]) ? 1 : 0;
      bytes += row[column].size();
    }
    const bool has_names = header.most_words() == 1 || header.is_known();
    if (numbers == rows.size() && !header.is_number(column) && has_names) return true;
    if (bytes >= kLongText * rows.size() && header.most_words() == 1) return true;
  }
  return false;
}

// Whether the text ends in the first row below a header: it has fewer fields, or a quote is open.
bool is_cut_in_row(const Records& records) {
  const std::size_t columns = records.whole[0].size();
  return records.cut.size() > 1 && records.cut.size() <= columns &&
         (records.cut_in_quotes || records.whole.size() == 1);
}

bool is_table(std::string_view text, char separator, bool is_all) {
  constexpr std::size_t kFewest = 3, kManyFields = 3;  // of records and of fields: two lines may be alike by chance
  constexpr std::int64_t kFewWords = 3, kManyWords = 6;
  const Records all = records_of(text, separator, is_all);
  const std::vector<Record>& records = all.whole;
  if (records.empty() || records[0].size() < 2 || !have_equal_fields(records)) return false;
  const bool is_tabs = separator == '\t', has_rows = records.size() >= kFewest;
  if (is_tabs && std::ranges::all_of(records, [](const Record& one) { return one[0].empty(); })) return false;
  if (is_tabs && has_rows && records[0].size() >= kManyFields) return true;
  const Header header(records[0]);
  if (!header.is_valid() || header.most_words() > (has_rows ? kManyWords : kFewWords)) return false;
  if (header.is_spaced()) {
    return header.is_known() && header.most_words() == 1 && (has_rows || is_number(records.back()[0]));
  }
  if (header.is_known() && header.most_words() == 1 && (records.size() > 1 || is_cut_in_row(all))) return true;
  if (header.is_known() && is_cut_in_row(all) && is_number(all.cut[0])) return true;
  return (has_rows && is_tabs) || ((has_rows || header.is_known()) && are_rows(header, records));
}

// Whether a line is `key = value` as in TOML and INI, with a value that is no prose.
bool is_assignment(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && (is_alphanumeric(line[end]) || line[end] == '-' || line[end] == '.')) ++end;
  if (end == 0 || !(line[0] >= 'a' && line[0] <= 'z')) return false;
  line.remove_prefix(end);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with('=')) return false;
  line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const bool is_value = !line.empty() && std::string_view("\"'[{+-0123456789").find(line[0]) != std::string_view::npos;
  return is_value || line.starts_with("true") || line.starts_with("false");
}

bool is_settings(std::string_view text, bool is_all) {
  std::size_t assignments = 0, heads = 0, variables = 0;
  for (std::size_t lines = 0; !text.empty() && lines < kMostRecords; ++lines) {
    const std::size_t end = text.find('\n');
    if (end == text.npos && !is_all) break;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end == text.npos ? end : end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    const bool is_head = line[0] == '[' && line.back() == ']' && std::ranges::all_of(line, [](char c) {
                           return is_alphanumeric(c) || std::string_view("[]-.\" ").find(c) != std::string_view::npos;
                         });
    if (!is_head && !is_assignment(line)) return false;
    heads += is_head ? 1 : 0;
    assignments += is_head ? 0 : 1;
    variables += !is_head && !is_alphanumeric(line[1]) ? 1 : 0;  // one-letter names, as in source code
  }
  return heads > 0 ? assignments > 0 : assignments > 1 && variables == 0;
}

const Finding kCommas{"a table of comma-separated values",
                      "write its column of texts as JSON lines, for example with "
                      "pandas: read_csv(F).to_json(O, orient='records', lines=True)"};
const Finding kTabs{"a table of tab-separated values",
                    "write its column of texts as JSON lines, for example with pandas: "
                    "read_csv(F, sep='\\t').to_json(O, orient='records', lines=True)"};
const Finding kSemicolons{"a table of semicolon-separated values",
                          "write its column of texts as JSON lines, for example with pandas: "
                          "read_csv(F, sep=';').to_json(O, orient='records', lines=True)"};
const Finding kSettings{"settings (TOML or INI), not a text", "name the file with the text"};

}  // namespace

std::optional<Finding> find_table(std::string_view text, bool is_all) {
  if (is_table(text, '\t', is_all)) return kTabs;
  if (is_table(text, ',', is_all)) return kCommas;
  if (is_table(text, ';', is_all)) return kSemicolons;
  if (is_settings(text, is_all)) {
    Finding settings = kSettings;
    settings.may_be_list = !text.starts_with('[') && text.find("\n[") == text.npos;
    return settings;
  }
  return std::nullopt;
}

std::optional<Finding> find_ending(std::string_view ending) {
  if (ending == ".csv") return kCommas;
  if (ending == ".tsv" || ending == ".tab") return kTabs;
  if (ending == ".toml") return kSettings;
  if (ending == ".html" || ending == ".htm" || ending == ".xhtml") {
    return Finding{"a page of HTML", "'teratron data extract' finds the article in it", true};
  }
  if (ending == ".xml" || ending == ".svg") {
    return Finding{"XML", "take the texts out of it, and write them as JSON lines or plain text", true};
  }
  if (ending == ".pkl" || ending == ".pickle") return Finding{"a pickle of Python's", "leave it out"};
  if (ending == ".parquet") {
    return Finding{"no Parquet file, though its name says so",
                   "download it again (a pointer of Git LFS is fetched by git lfs pull)"};
  }
  if (ending == ".br") return Finding{"compressed with brotli", "decompress it, or pipe brotli -dc into -"};
  return std::nullopt;
}

}  // namespace teratron::content
