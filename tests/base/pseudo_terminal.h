// A terminal whose other end a test holds: it types, and reads what programs show.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace teratron::testing {

class PseudoTerminal {
 public:
  PseudoTerminal(int rows, int columns) : held_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (held_ < 0 || ::grantpt(held_) != 0 || ::unlockpt(held_) != 0) return;
    path_ = ::ptsname(held_);
    own_ = ::open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);  // where no program has it open, reading fails
    resize(rows, columns);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  ~PseudoTerminal() {
    if (own_ >= 0) ::close(own_);
    if (held_ >= 0) ::close(held_);
  }

  bool exists() const { return own_ >= 0; }  // a container may have none
  const std::string& path() const { return path_; }
  void resize(int rows, int columns) const {
    winsize size{};
    size.ws_row = static_cast<unsigned short>(rows), size.ws_col = static_cast<unsigned short>(columns);
    if (::ioctl(held_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("a terminal has no size");
  }
  void type(std::string_view keys) const {
    if (::write(held_, keys.data(), keys.size()) < 0) throw std::runtime_error("nobody can type on a terminal");
  }

  // Output of programs since the last call, up to and with `text`.
  std::string shown_until(std::string_view text) {
    constexpr int kLongest = 60'000;  // milliseconds without a character
    std::size_t found = 0;
    while ((found = shown_.find(text)) == std::string::npos) {
      pollfd look{.fd = held_, .events = POLLIN, .revents = 0};
      std::array<char, 4096> piece{};
      const ssize_t size = ::poll(&look, 1, kLongest) > 0 ? ::read(held_, piece.data(), piece.size()) : -1;
      if (size <= 0) throw std::runtime_error("a terminal shows no more than: " + shown_);
      shown_.append(piece.data(), static_cast<std::size_t>(size));
    }
    const std::string shown = shown_.substr(0, found + text.size());
    shown_.erase(0, shown.size());
    return shown;
  }

 private:
  int held_, own_ = -1;
  std::string path_, shown_;
};

}  // namespace teratron::testing
