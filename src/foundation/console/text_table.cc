#include "console/text_table.h"

#include <algorithm>

#include "base/error.h"
#include "console/terminal_text.h"

namespace teratron {

void TextTable::heading(std::string text) {
  headings_.push_back(rows_.size());
  rows_.push_back({std::move(text)});
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (std::binary_search(headings_.begin(), headings_.end(), i)) continue;
    check(rows_[i].size() <= widths.size(), "a table's row has more cells than the table has columns");
    for (std::size_t column = 0; column < rows_[i].size(); ++column) {
      widths[column] = std::max(widths[column], display_width(rows_[i][column]));
    }
  }
  return widths;
}

std::string TextTable::text(std::size_t indent) const {
  const std::vector<std::size_t> width = widths();
  std::string text;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (std::binary_search(headings_.begin(), headings_.end(), i)) {
      text += rows_[i].front() + "\n";
      continue;
    }
    std::string line(indent, ' ');
    for (std::size_t column = 0; column < rows_[i].size(); ++column) {
      const std::string& cell = rows_[i][column];
      const std::string padding(width[column] - display_width(cell), ' ');
      line += columns_[column] == Align::kLeft ? cell + padding : padding + cell;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace teratron
