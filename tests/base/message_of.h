// The message of an error that a test expects.
#pragma once

#include <string>

namespace teratron::testing {

inline constexpr const char* kNoError = "(nothing was thrown)";

// Message of the Error that `body` throws; kNoError if it throws none.
template <class Error, class Body>
[[nodiscard]] std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return kNoError;
}

}  // namespace teratron::testing
