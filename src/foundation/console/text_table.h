// Aligned columns of text, for start-up tables, --help and reports.
#pragma once

#include <string>
#include <vector>

namespace teratron {

enum class Align { kLeft, kRight };

class TextTable {
 public:
  // One alignment a column.
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

  // A cell for each column, or fewer: the rest stay empty.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line of its own, which does not widen the columns.
  void heading(std::string text);

  // Every row a line, indented by `indent` spaces, columns two spaces apart; headings are not indented.
  std::string text(std::size_t indent = 2) const;

 private:
  std::vector<std::size_t> widths() const;

  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> headings_;  // which rows are one
};

// How many columns `text` takes on a terminal, counting a character of UTF-8 as one.
std::size_t display_width(const std::string& text);

}  // namespace teratron
