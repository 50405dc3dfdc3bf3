#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace teratron::jinja {

// Fault of a template, or of what it was given: what is wrong, and the line where that is known.
class Error : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace teratron::jinja
