// Faults of a file, without its name. RowReader makes UserErrors of them, with the file and the row.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace teratron::parquet {

// Bytes that no correct writer writes.
struct Damaged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A part of the format that is not read here: "columns compressed by LZO".
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Bytes that are not UTF-8, in a column that is read as text; the message is the column's name.
struct NoText : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void throw_damaged(fmt::format_string<Args...> format, Args&&... args) {
  throw Damaged(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throw_unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Unsupported(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace teratron::parquet
