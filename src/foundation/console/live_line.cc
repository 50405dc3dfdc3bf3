#include "console/live_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/utf8.h"

namespace teratron {
namespace {

constexpr int kUsualColumns = 80;
constexpr const char* kClear = "\r\x1b[K";  // moves to the line's beginning and erases to its end

// The first characters of `text`, or all.
std::string_view first_characters(std::string_view text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count && end < text.size(); ++i) end += decode_utf8(text.substr(end)).length;
  return text.substr(0, end);
}

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
  // A line that fills the last column may wrap; "\r" would then not lead back to its beginning.
  std::fputs(fmt::format("{}{}", kClear, first_characters(text, columns_ - 1)).c_str(), file_);
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
