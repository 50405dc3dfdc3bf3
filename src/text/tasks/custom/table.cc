#include "tasks/custom/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/utf8.h"
#include "data/text/document_reader.h"
#include "data/text/input_files.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"
#include "tasks/delimited.h"

namespace teratron::custom {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kJsonBatchBytes = std::int64_t{8} << 20;

// The first row of a table: which cell each wanted column is.
class Header {
 public:
  Header(const std::vector<std::string>& names, const Columns& columns, std::string place)
      : names_(names),
        place_(std::move(place)),
        text_(find("text-column", columns.text)),
        pair_(find("pair-column", columns.pair)),
        negative_(find("negative-column", columns.negative)),
        label_(find("label-column", columns.label)) {
    if (!columns.text.empty() && !text_) throw_missing("text-column", columns.text);
    if (!columns.pair.empty() && !pair_) throw_missing("pair-column", columns.pair);
    if (!columns.negative.empty() && !negative_) throw_missing("negative-column", columns.negative);
  }

  std::size_t columns() const { return names_.size(); }
  Row row(const std::vector<std::string>& cells) const {
    return {.text = cell(cells, text_),
            .pair = cell(cells, pair_),
            .negative = cell(cells, negative_),
            .label = std::string(without_ascii_spaces(cell(cells, label_)))};
  }

 private:
  static std::string cell(const std::vector<std::string>& cells, std::optional<std::size_t> column) {
    return column ? cells[*column] : std::string();
  }
  std::optional<std::size_t> find(std::string_view flag, const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (name.empty() || found == names_.end()) return std::nullopt;
    if (std::count(found, names_.end(), name) > 1) {
      throw_user_error("{}: two columns are called '{}' (--{}); rename one", place_, name, flag);
    }
    return static_cast<std::size_t>(found - names_.begin());
  }
  [[noreturn]] void throw_missing(std::string_view flag, const std::string& name) const {
    throw_user_error("{}: no column is called '{}'; name one of {} with --{} (the first row has the names)", place_,
                     name, fmt::join(names_, ", "), flag);
  }

  const std::vector<std::string> names_;
  const std::string place_;
  const std::optional<std::size_t> text_, pair_, negative_, label_;
};

// UserError: the first row is one cell that contains another format's separator.
void require_columns(const std::vector<std::string>& names, Delimiter delimiter, const std::string& place) {
  const bool by_commas = delimiter == Delimiter::kComma;
  if (names.size() != 1 || names.front().find_first_of(by_commas ? ";\t" : ",;") == std::string::npos) return;
  throw_user_error("{}: the first row is one cell, '{}'; {} part the columns of this file by its name, so write it so",
                   place, names.front(), by_commas ? "commas" : "tabs");
}

// 1: quotes stand around the cell and are doubled in it, as in CSV. -1: its quotes are text. 0: none, or unclear.
int sign_of_quotes(std::string_view cell) {
  if (cell.find('"') == std::string_view::npos) return 0;
  if (cell.size() < 2 || cell.front() != '"' || cell.back() != '"') return -1;
  return cell.substr(1, cell.size() - 2).find("\"\"") == std::string_view::npos ? 0 : 1;
}

void add_delimited(const fs::path& path, Delimiter delimiter, const Columns& columns, Table& table) {
  const std::string text = read_decompressed(path);
  DelimitedReader reader(text, delimiter, path);
  if (!reader.next()) throw_user_error("'{}' is empty; its first row names the columns", path.string());
  require_columns(reader.cells(), delimiter, place_of(path, reader.line()));
  const Header header(reader.cells(), columns, place_of(path, reader.line()));
  table.columns = reader.cells();
  int least = 0;
  std::int64_t quoted_line = 0;
  while (reader.next()) {
    if (reader.cells().size() != header.columns()) {
      throw_user_error("{}: {}, where the first row has {}; {}", place_of(path, reader.line()),
                       counted(std::ssize(reader.cells()), "cell"), header.columns(),
                       delimiter == Delimiter::kComma ? "put a text with a comma or a line end in quotes"
                                                      : "a text holds neither tabs nor line ends");
    }
    table.rows.push_back(header.row(reader.cells()));
    table.rows.back().line = reader.line();
    table.rows.back().file = table.files.size() - 1;
    for (const std::string& cell : reader.cells()) {
      const int sign = sign_of_quotes(cell);
      least = std::min(least, sign);
      if (sign > 0 && quoted_line == 0) quoted_line = reader.line();
    }
  }
  if (delimiter == Delimiter::kComma || least < 0 || quoted_line == 0) return;
  throw_user_error(
      "{}: a cell stands in quotes that double those of its text, and in .tsv quotes are text; write .csv, or cells as "
      "they are",
      place_of(path, quoted_line));
}

std::vector<std::string> names_of(std::string_view object) {
  std::vector<std::string> names;
  visit_members(object, [&](const std::string& name, std::string_view) {
    names.push_back(name);
    return true;
  });
  return names;
}

// A member's value as text; nullopt: it is null or missing.
std::optional<std::string> text_of_member(std::string_view object, const std::string& key, const std::string& place) {
  const std::optional<std::string_view> value = find_member(object, key);
  if (!value || *value == "null") return std::nullopt;
  if (value->starts_with('"')) return json_string_value(*value);
  if (!value->starts_with('{') && !value->starts_with('[')) return std::string(*value);
  throw_user_error("{}: \"{}\" is no text, no number and no boolean", place, key);
}

std::string needed_member(std::string_view object, const std::string& key, std::string_view flag,
                          const std::string& place) {
  if (key.empty()) return "";
  if (std::optional<std::string> text = text_of_member(object, key, place)) return std::move(*text);
  throw_user_error("{}: there is no text under \"{}\"; its keys are {} (--{} names another)", place, key,
                   keys_of(object), flag);
}

void add_objects(const fs::path& path, const Columns& columns, Table& table) {
  table.columns.clear();
  const std::vector<std::string> texts = {columns.text, columns.pair, columns.negative, columns.label};
  visit_objects(path, texts, [&](std::string_view object, const std::string& place, std::int64_t line) {
    Row row{.text = needed_member(object, columns.text, "text-column", place),
            .pair = needed_member(object, columns.pair, "pair-column", place),
            .negative = needed_member(object, columns.negative, "negative-column", place),
            .line = line,
            .file = table.files.size() - 1};
    if (!columns.label.empty()) {
      row.label = without_ascii_spaces(text_of_member(object, columns.label, place).value_or(""));
    }
    table.rows.push_back(std::move(row));
    if (table.columns.empty()) table.columns = names_of(object);
  });
}

void add_file(const fs::path& path, const Columns& columns, Table& table) {
  const std::string ending = content_ending(path);
  if (ending == ".csv") return add_delimited(path, Delimiter::kComma, columns, table);
  if (ending == ".tsv") return add_delimited(path, Delimiter::kTab, columns, table);
  if (ending == ".json" || ending == ".parquet" || is_named_json_lines(path)) return add_objects(path, columns, table);
  throw_user_error(
      "'{}' ends with none of .csv, .tsv, .jsonl, .json (or those with .gz or .zst) and .parquet, by which examples "
      "are read; rename it",
      path.string());
}

}  // namespace

Columns columns_of(const TaskReading& reading) {
  return {.text = reading.text_column,
          .pair = reading.pair_column,
          .negative = reading.negative_column,
          .label = reading.label_column};
}

void visit_objects(const fs::path& file, std::vector<std::string> texts, const ObjectVisitor& visit) {
  DocumentReader reader(std::span(&file, 1), kJsonBatchBytes, TextFormat::kAuto);
  reader.stay_silent();
  reader.advise_flag("");
  reader.take_texts(std::move(texts));
  for (DocumentBatch batch; reader.next(batch);) {
    for (const RawDocument& document : batch.documents) {
      const std::string place = place_of(file, document.line, document.unit);
      const std::string_view object = without_ascii_spaces(document.bytes);
      if (!is_utf8(object)) throw_user_error("{}: this is not UTF-8: {}; convert the file", place, utf8_fault(object));
      if (!object.starts_with('{') || !is_json(object)) {
        throw_user_error("{}: this is no JSON object{}; write one for each example", place,
                         object.starts_with('{') ? ": " + json_fault(object) : "");
      }
      visit(object, place, document.line);
    }
  }
}

std::string keys_of(std::string_view object) { return fmt::format("{}", fmt::join(names_of(object), ", ")); }

std::string Table::place(const Row& row) const { return place_of(files[row.file], row.line); }

Table read_table(std::span<const fs::path> files, const Columns& columns) {
  Table table;
  for (const fs::path& file : files) {
    const std::size_t before = table.rows.size();
    table.files.push_back(file);
    add_file(file, columns, table);
    if (table.rows.size() == before) throw_user_error("'{}' has no example; write one a row", file.string());
  }
  return table;
}

}  // namespace teratron::custom
