// Line at the bottom of a terminal that is rewritten.
#pragma once

#include <cstdio>
#include <string_view>

namespace teratron {

// Columns of the terminal that `file` writes to; 0: no terminal, or one that cannot move its cursor.
int terminal_columns(std::FILE* file);

// Shows nothing where `columns` is 0. `file` must outlive it.
class LiveLine {
 public:
  LiveLine(std::FILE* file, int columns) : file_(file), columns_(columns) {}
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;
  ~LiveLine() { keep(); }

  bool possible() const { return columns_ > 0; }
  bool shown() const { return shown_; }
  void show(std::string_view text);  // replaces the text; cut to the terminal's width
  void clear();                      // leaves an empty line
  void keep();                       // leaves the text and goes on below it

 private:
  std::FILE* file_;
  int columns_;
  bool shown_ = false;
};

}  // namespace teratron
