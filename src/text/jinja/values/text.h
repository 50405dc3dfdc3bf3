// A text of a template: UTF-8, with the offsets by which a character is found by its number, in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace teratron::jinja {

struct Text {
  Text(std::string its_bytes, bool is_safe);

  // The characters begin to end - 1; begin <= end <= characters.
  std::string_view part(std::size_t begin, std::size_t end) const;
  // Most characters that part() goes through to find one.
  std::size_t most_steps() const { return offsets_.empty() ? 1 : kStride; }

  const std::string bytes;
  const bool safe;               // Markup, which escapes what is added to it
  const std::size_t characters;  // number of them

 private:
  std::size_t offset_of(std::size_t index) const;

  static constexpr std::size_t kStride = 64;
  std::vector<std::uint32_t> offsets_;  // of each 64th character; empty where all are ASCII
};

}  // namespace teratron::jinja
