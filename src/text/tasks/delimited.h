// Tables of cells: CSV (RFC 4180) and tab-separated values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

enum class Delimiter {
  // Cells between commas. A cell that begins with a quote ends at the next single quote; before that, a doubled quote
  // stands for one, and commas and line ends are text. Any other quote is text, and so is everything from a closing
  // quote to the next comma: the rules of Python's csv module for its dialect "excel".
  kComma,
  kTab,  // cells between tabs, in which quotes are text, as in GLUE's files; a cell has no tab and no line end
};

// Reads a table row by row. Rows end with \n, \r\n or \r; those without a byte are skipped. A byte order mark is
// removed. For one thread.
class DelimitedReader {
 public:
  // `text` is the content of `file`, which errors name, and must outlive the reader. UserError: it is not UTF-8.
  DelimitedReader(std::string_view text, Delimiter delimiter, const std::filesystem::path& file);

  // Reads the next row; false: there is none. UserError, with the line: a quote without its closing one.
  bool next();
  const std::vector<std::string>& cells() const { return cells_; }
  std::int64_t line() const { return line_; }  // that the row begins on, from 1

 private:
  void read_quoted();
  void read_plain();
  bool at_line_end() const { return rest_.empty() || rest_.front() == '\n' || rest_.front() == '\r'; }
  void take_line_end();

  std::string_view rest_;  // unread
  const char delimiter_;
  const std::filesystem::path file_;
  std::vector<std::string> cells_;
  std::int64_t line_ = 0, next_line_ = 1;
};

}  // namespace teratron
