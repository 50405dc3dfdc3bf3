#include "console/live_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "console/terminal_text.h"

namespace teratron {
namespace {

constexpr int kUsualColumns = 80;
constexpr const char* kClear = "\r\x1b[K";  // moves to the line's beginning and erases to its end

}  // namespace

int terminal_columns(std::FILE* file) {
  if (::isatty(::fileno(file)) == 0) return 0;
  const char* terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return 0;
  winsize size{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

void LiveLine::show(std::string_view text) {
  if (!possible()) return;
  // Names of files may hold line ends and tabs, which take more than one line or column.
  std::string line = printable(text);
  std::ranges::replace_if(
      line, [](char byte) { return byte == '\n' || byte == '\t'; }, ' ');
  // A line that fills the last column may wrap; "\r" would then not lead back to its beginning.
  const auto columns = static_cast<std::size_t>(columns_ - 1);
  std::fputs(fmt::format("{}{}", kClear, first_columns(line, columns)).c_str(), file_);
  std::fflush(file_);
  shown_ = true;
}

void LiveLine::clear() {
  if (!shown_) return;
  std::fputs(kClear, file_);
  std::fflush(file_);
  shown_ = false;
}

void LiveLine::keep() {
  if (!shown_) return;
  std::fputs("\n", file_);
  std::fflush(file_);
  shown_ = false;
}

}  // namespace teratron
