// Terms and their explanations in two columns, as --help shows commands and flags.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace teratron {

struct TextStyle {
  std::size_t columns = 80;
  bool has_colours = false;
};

// When text has colours: on a terminal unless NO_COLOR says no (no-color.org), always, or never.
enum class Colours { kAuto, kAlways, kNever };

// Colours of all that the process writes from now on, by --color. Call it before other threads write.
void set_colours(Colours colours);

// Style for what `file` leads to: a terminal's width, from 60 to 110 columns, else 80 columns; with set_colours().
TextStyle style_for(std::FILE* file);

class TermList {
 public:
  explicit TermList(TextStyle style) : style_(style) {}

  void heading(std::string text) { rows_.push_back({.term = std::move(text), .is_heading = true}); }
  void term(std::string term, std::string explanation) {
    rows_.push_back({.term = std::move(term), .explanation = std::move(explanation)});
  }

  // Lines within the style's columns, but for words that are longer. A long term stands on lines of its own, cut after
  // "|" or ",". A blank line stands before every heading but the first row's.
  std::string text() const;

 private:
  struct Row {
    std::string term, explanation;
    bool is_heading = false;
  };
  TextStyle style_;
  std::vector<Row> rows_;
};

// Cuts text at spaces into lines of at most `columns`. A longer word has its own line.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);

// Text for a terminal of so many columns: longer lines go on, four spaces further in. 0 columns, no terminal:
// unchanged.
std::string fitted(const std::string& text, int columns);

}  // namespace teratron
