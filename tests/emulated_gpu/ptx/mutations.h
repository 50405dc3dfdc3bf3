// Faults that tests plant in what nvcc made of our kernels, one at a time.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "emulated_gpu/ptx/launch.h"

namespace teratron::testing {

using Change = std::function<std::string(std::string)>;  // of a line

constexpr int kAll = -1;

struct Mutation {
  std::string name;
  std::string kernel;  // a part of its demangled name
  std::string line;    // a part of the lines that may change
  int which = 0;       // of these lines, or kAll
  Change change;
  std::string seen;  // a part of what is found; empty: the numbers differ
  std::string operation = "matrix_attention";
  DType dtype = DType::kBF16;
};

inline void PrintTo(const Mutation& mutation, std::ostream* out) { *out << mutation.name; }

inline std::string removed(const std::string&) { return ""; }

inline Change replaced(const std::string& from, const std::string& to) {
  return [=](std::string line) {
    const std::size_t at = line.find(from);
    check(at != std::string::npos, fmt::format("'{}' is in '{}'", from, line));
    return line.replace(at, from.size(), to);
  };
}

inline Change put_before(const std::string& text) {
  return [=](const std::string& line) { return text + line; };
}
inline Change put_after(const std::string& text) {
  return [=](const std::string& line) { return line + text; };
}

// Registers with the number 0 are declared, and nvcc does not use them.
inline std::string by_half_the_lanes(const std::string& line) {
  return "mov.u32 %r0, %tid.x; and.b32 %r0, %r0, 16; setp.eq.s32 %p0, %r0, 0; @%p0 " + line;
}

// Operands of `name  a, b, c;`.
inline Change swapped(std::size_t first, std::size_t second) {
  return [=](std::string line) {
    const std::size_t begin = line.find('%', line.find('.')), end = line.find(';');
    std::vector<std::string> operands(1);
    for (const char c : line.substr(begin, end - begin)) {
      c == ',' ? static_cast<void>(operands.emplace_back()) : operands.back().push_back(c);
    }
    std::swap(operands.at(first), operands.at(second));
    std::string text;
    for (const std::string& operand : operands) text += (text.empty() ? "" : ", ") + operand;
    return line.replace(begin, end - begin, text);
  };
}

inline Change with_last_operand(const std::string& text) {
  return [=](std::string line) {
    const std::size_t comma = line.rfind(','), end = line.find(';', comma);
    return line.replace(comma + 1, end - comma - 1, " " + text);
  };
}

// An address 4 bytes further.
inline std::string moved_by_4(std::string line) {
  const std::size_t plus = line.find('+'), end = line.find(']');
  if (plus == std::string::npos) return line.insert(end, "+4");
  const int offset = std::stoi(line.substr(plus + 1));
  return line.replace(plus + 1, end - plus - 1, std::to_string(offset + 4));
}

inline std::string mutated(const std::string& body, const Mutation& mutation) {
  std::string result;
  int found = 0;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    const std::string line = body.substr(at, end - at);
    const bool fits = line.find(mutation.line) != std::string::npos;
    const bool changes = fits && (mutation.which == kAll || found == mutation.which);
    found += fits ? 1 : 0;
    result += (changes ? mutation.change(line) : line) + "\n";
    at = end + 1;
  }
  return result;
}

// Tests of the PTX that nvcc made, which skip without nvcc.
class PtxKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(TERATRON_PTX_FOLDER).empty()) GTEST_SKIP() << "nvcc was not found when this was configured";
    static const bool loaded = [] {
      emulated::ptx::use_folder(TERATRON_PTX_FOLDER);
      return true;
    }();
    ASSERT_TRUE(loaded);
  }
};

}  // namespace teratron::testing
