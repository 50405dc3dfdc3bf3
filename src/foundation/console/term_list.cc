#include "console/term_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "console/live_line.h"
#include "console/terminal_text.h"

namespace teratron {
namespace {

Colours colours_of_process = Colours::kAuto;

constexpr std::size_t kIndent = 2, kGap = 2, kMostOfATerm = 26;

// Cuts a term after "|", "," or a space into lines of at most `columns`.
std::vector<std::string> cut_term(const std::string& term, std::size_t columns) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < term.size();) {
    const std::size_t end = std::min(term.find_first_of("|, ", at), term.size() - 1) + 1;
    const std::string part = term.substr(at, end - at);
    const bool fits = display_width(lines.back()) + display_width(part) <= columns;
    if (!fits && !lines.back().empty()) lines.emplace_back();
    lines.back() += part;
    at = end;
  }
  return lines;
}

std::string coloured(const std::string& text, const char* code, const TextStyle& style) {
  return style.has_colours ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

}  // namespace

void set_colours(Colours colours) { colours_of_process = colours; }

TextStyle style_for(std::FILE* file) {
  const int columns = terminal_columns(file);
  TextStyle style;
  if (columns > 0) style.columns = static_cast<std::size_t>(std::clamp(columns, 60, 110));
  const char* const no_colour = std::getenv("NO_COLOR");
  const bool by_itself = columns > 0 && (no_colour == nullptr || *no_colour == '\0');
  style.has_colours = colours_of_process == Colours::kAuto ? by_itself : colours_of_process == Colours::kAlways;
  return style;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > columns) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

std::string fitted(const std::string& text, int columns) {
  constexpr std::size_t kFurtherIn = 4, kLeastWords = 20;
  if (columns <= 0) return text;
  const auto width = static_cast<std::size_t>(columns);
  std::string lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size()) + kFurtherIn;
    if (display_width(line) <= width || width < indent + kLeastWords) {
      lines += line;
    } else {
      const std::string join = "\n" + std::string(indent, ' ');
      lines += std::string(indent - kFurtherIn, ' ') +
               fmt::format("{}", fmt::join(wrapped(line.substr(indent - kFurtherIn), width - indent), join));
    }
    if (end < text.size()) lines += '\n';
    at = end + 1;
  }
  return lines;
}

std::string TermList::text() const {
  std::size_t width = 0;
  for (const Row& row : rows_) {
    const std::size_t own = display_width(row.term);
    if (!row.is_heading && own <= kMostOfATerm) width = std::max(width, own);
  }
  const std::size_t left = kIndent + width + kGap;
  std::string text;
  for (const Row& row : rows_) {
    if (row.is_heading) {
      text += (text.empty() ? "" : "\n") + coloured(row.term, "1", style_) + "\n";
      continue;
    }
    std::size_t at = 0;  // column of the last line of the term; 0: the term's line has ended
    if (display_width(row.term) <= width) {
      text += std::string(kIndent, ' ') + coloured(row.term, "36", style_);
      at = kIndent + display_width(row.term);
    } else {
      for (const std::string& line : cut_term(row.term, style_.columns - kIndent)) {
        text += std::string(kIndent, ' ') + coloured(line, "36", style_) + "\n";
      }
    }
    for (const std::string& line : wrapped(row.explanation, style_.columns - left)) {
      text += line.empty() ? "\n" : std::string(left - at, ' ') + line + "\n";
      at = 0;
    }
  }
  return text;
}

}  // namespace teratron
