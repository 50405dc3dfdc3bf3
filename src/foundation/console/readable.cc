#include "console/readable.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace teratron {
namespace {

// Writes three digits and the largest unit of which there is at least one. A value that would round up to 1000 (or
// 1024) of a unit is written as 1 of the next.
template <std::size_t N>
std::string in_units(double value, double step, const std::array<std::string_view, N>& units) {
  std::size_t unit = 0;
  while (unit + 1 < N && std::abs(value) >= step - 0.5) {
    value /= step;
    ++unit;
  }
  const int decimals = std::abs(value) >= 99.95 ? 0 : std::abs(value) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}{}", value, unit == 0 && value == std::floor(value) ? 0 : decimals,
                     units[unit].empty() ? "" : " ", units[unit]);
}

}  // namespace

std::string readable_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return in_units(static_cast<double>(bytes), 1024, kUnits);
}

std::string readable_count(double count) {
  constexpr std::array<std::string_view, 6> kUnits = {"", "k", "M", "G", "T", "P"};
  return in_units(count, 1000, kUnits);
}

std::string readable_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 1e15) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (whole < kHour) return fmt::format("{} min {:02} s", whole / kMinute, whole % kMinute);
  if (whole < kDay) return fmt::format("{} h {:02} min", whole / kHour, whole % kHour / kMinute);
  return fmt::format("{} d {:02} h", whole / kDay, whole % kDay / kHour);
}

}  // namespace teratron
