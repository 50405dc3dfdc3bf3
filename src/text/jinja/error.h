// The error of this room.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace teratron::jinja {

// A fault of a template or of its variables: what is wrong, with the line where it is known.
class Error : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace teratron::jinja
