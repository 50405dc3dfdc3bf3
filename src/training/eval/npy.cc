#include "eval/npy.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string>

#include "base/files/file.h"
#include "base/round_up.h"

namespace teratron {

static_assert(std::endian::native == std::endian::little, "AtomicFile::write_values writes this machine's byte order");

void write_npy(const std::filesystem::path& path, std::int64_t columns, std::span<const float> values) {
  // Magic, version, length, and a Python dictionary, padded with spaces and a line end to a multiple of 64.
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
  std::string description =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  description.resize(round_up(kBefore + description.size() + 1, kAlignment) - kBefore - 1, ' ');
  description += '\n';
  const std::array lengths = {static_cast<char>(description.size() & 0xff), static_cast<char>(description.size() >> 8)};
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  file.write_values(std::span<const char>(lengths));
  file.write(description);
  file.write_values(values);
  file.commit();
}

}  // namespace teratron
