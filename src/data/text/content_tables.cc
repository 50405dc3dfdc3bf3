// Tables and settings as text: told by the shape of all their lines, or by their name.
#include <algorithm>
#include <string>
#include <vector>

#include "data/text/content_kinds.h"

namespace teratron::content {
namespace {

constexpr std::size_t kMostRecords = 64;  // that are looked at

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

using Record = std::vector<std::string_view>;

// Records as RFC 4180 has them: fields in quotes may hold the separator and line ends. One that the text cuts off is
// left out unless it is all. Empty where quotes do not stand as they should.
std::vector<Record> records_of(std::string_view text, char separator, bool is_all) {
  std::vector<Record> records;
  Record record;
  for (std::size_t at = 0, begin = 0; records.size() < kMostRecords; ++at) {
    if (at < text.size() && at == begin && text[at] == '"') {
      do {
        at = text.find('"', at + 1);
        if (at == text.npos) return is_all ? std::vector<Record>{} : records;
        ++at;
      } while (at < text.size() && text[at] == '"');
      if (at < text.size() && text[at] != separator && text[at] != '\n' && text[at] != '\r') return {};
    }
    const bool is_end = at >= text.size();
    if (!is_end && text[at] != separator && text[at] != '\n') continue;
    if (is_end && !is_all) break;
    std::string_view field = text.substr(begin, std::min(at, text.size()) - begin);
    if (field.ends_with('\r')) field.remove_suffix(1);
    record.push_back(field);
    begin = at + 1;
    if (!is_end && text[at] == separator) continue;
    if (record.size() > 1 || !record[0].empty()) records.push_back(std::move(record));
    record.clear();
    if (is_end) break;
  }
  return records;
}

bool have_equal_fields(const std::vector<Record>& records) {
  return std::ranges::all_of(records, [&](const Record& one) { return one.size() == records[0].size(); });
}

// A column's name: a word or a few, and never a sentence.
bool is_column_name(std::string_view field) {
  if (field.size() > 1 && field.starts_with('"') && field.ends_with('"')) field = field.substr(1, field.size() - 2);
  constexpr std::size_t kLongest = 40;
  return !field.empty() && field.size() <= kLongest && is_alphanumeric(field.front()) &&
         is_alphanumeric(field.back()) &&
         std::ranges::all_of(field, [](char c) { return is_alphanumeric(c) || c == ' ' || c == '-' || c == '.'; });
}

bool is_table(std::string_view text, char separator, bool is_all) {
  constexpr std::size_t kFewest = 3;  // records: two lines may be alike by chance
  const std::vector<Record> records = records_of(text, separator, is_all);
  if (records.size() < kFewest || records[0].size() < 2 || !have_equal_fields(records)) return false;
  if (separator == '\t') return true;
  // Lines of prose and of verse may have as many commas each, but a space behind them.
  Record names = records[0];
  std::ranges::sort(names);
  return std::ranges::all_of(names, is_column_name) && std::ranges::adjacent_find(names) == names.end();
}

// `key = value`, as TOML and INI have it, with a value that is no prose.
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
  std::size_t assignments = 0, heads = 0;
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
  }
  return assignments > 1 || (assignments == 1 && heads > 0);
}

const Finding kCommas{"a table of comma-separated values",
                      "write its column of texts as JSON lines, for example with "
                      "pandas: read_csv(F).to_json(O, orient='records', lines=True)"};
const Finding kTabs{"a table of tab-separated values",
                    "write its column of texts as JSON lines, for example with pandas: "
                    "read_csv(F, sep='\\t').to_json(O, orient='records', lines=True)"};
const Finding kSettings{"settings (TOML or INI), not a text", "name the file with the text"};

}  // namespace

std::optional<Finding> find_table(std::string_view text, bool is_all) {
  if (is_table(text, '\t', is_all)) return kTabs;
  if (is_table(text, ',', is_all)) return kCommas;
  if (is_settings(text, is_all)) return kSettings;
  return std::nullopt;
}

std::optional<Finding> find_ending(std::string_view ending) {
  if (ending == ".csv") return kCommas;
  if (ending == ".tsv" || ending == ".tab") return kTabs;
  if (ending == ".toml") return kSettings;
  if (ending == ".html" || ending == ".htm" || ending == ".xhtml") {
    return Finding{"a page of HTML", "'teratron data extract' finds the article in it", true};
  }
  return std::nullopt;
}

}  // namespace teratron::content
