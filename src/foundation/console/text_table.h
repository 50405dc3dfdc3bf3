// Aligned columns of text, for start-up tables and reports.
#pragma once

#include <string>
#include <vector>

namespace teratron {

enum class Align { kLeft, kRight };

class TextTable {
 public:
  // `columns`: the alignment of each.
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

  // Adds a row with a cell for each column, or fewer: the rest stay empty.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Adds a line that does not widen the columns.
  void heading(std::string text);

  // Rows as lines, indented by `indent` spaces, columns two spaces apart. Headings are not indented.
  std::string text(std::size_t indent = 2) const;

 private:
  std::vector<std::size_t> widths() const;

  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> headings_;  // indices of rows_
};

}  // namespace teratron
