#include "tasks/delimited.h"

#include <algorithm>

#include "base/error.h"
#include "data/text/content.h"
#include "data/text/document_reader.h"
#include "data/text/input_files.h"

namespace teratron {

DelimitedReader::DelimitedReader(std::string_view text, Delimiter delimiter, const std::filesystem::path& file)
    : rest_(without_byte_order_mark(text)), delimiter_(delimiter == Delimiter::kComma ? ',' : '\t'), file_(file) {
  require_text(text, 0, file);
  require_utf8(text, file, "");
}

void DelimitedReader::take_line_end() {
  if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
  if (!rest_.empty()) rest_.remove_prefix(1);
  ++next_line_;
}

void DelimitedReader::read_quoted() {
  const std::int64_t line = next_line_;
  std::string& cell = cells_.back();
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t end = rest_.find('"');
    if (end == std::string_view::npos) {
      throw_user_error("{}: a cell begins with a quote (\") that nothing closes; close it, or double it if it is text",
                       place_of(file_, line));
    }
    const std::string_view part = rest_.substr(0, end);
    for (std::size_t at = 0; at < part.size(); ++at) {
      const bool is_pair = part[at] == '\r' && at + 1 < part.size() && part[at + 1] == '\n';
      if (part[at] == '\n' || (part[at] == '\r' && !is_pair)) ++next_line_;
    }
    cell += part;
    rest_.remove_prefix(end + 1);
    if (!rest_.starts_with('"')) break;
    cell += '"';
    rest_.remove_prefix(1);
  }
}

void DelimitedReader::read_plain() {
  const std::size_t end = std::min(rest_.find_first_of(std::string{delimiter_, '\n', '\r'}), rest_.size());
  cells_.back() += rest_.substr(0, end);
  rest_.remove_prefix(end);
}

bool DelimitedReader::next() {
  while (!rest_.empty() && at_line_end()) take_line_end();
  if (rest_.empty()) return false;
  line_ = next_line_;
  cells_.clear();
  for (;;) {
    cells_.emplace_back();
    if (delimiter_ == ',' && rest_.starts_with('"')) read_quoted();
    read_plain();
    if (at_line_end()) break;
    rest_.remove_prefix(1);  // the delimiter
  }
  if (!rest_.empty()) take_line_end();
  return true;
}

}  // namespace teratron
