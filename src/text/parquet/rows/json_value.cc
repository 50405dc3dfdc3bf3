#include "parquet/rows/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/base64.h"
#include "base/dtype.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "parquet/file/byte_reader.h"

namespace teratron::parquet {
namespace {

constexpr std::int64_t kSecondsPerDay = 86'400, kNanosecondsPerSecond = 1'000'000'000;

template <class... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

template <class Float>
void append_float(Float value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::size_t begin = out.size();
  append(out, "{}", value);
  if (out.find_first_of(".e", begin) == out.npos) out += ".0";
}

// Year, month and day by the Gregorian calendar of a day, counted from 1 January 1970. Years are counted from March, so
// that a leap day is a year's last one, and in eras of 400 years, which have equally many days.
void append_date(std::int64_t day, std::string& out) {
  constexpr std::int64_t kDaysOfEra = 146'097, kDaysBefore1970 = 719'468;
  day += kDaysBefore1970;
  const std::int64_t era = (day >= 0 ? day : day - kDaysOfEra + 1) / kDaysOfEra;
  const std::int64_t in_era = day - era * kDaysOfEra;
  const std::int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36'524 - in_era / 146'096) / 365;
  const std::int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * in_year + 2) / 153;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  append(out, "{:04}-{:02}-{:02}", year, month, in_year - (153 * month_from_march + 2) / 5 + 1);
}

// A time of day, with 3, 6 or 9 digits of a second where they are needed.
void append_time(std::int64_t seconds, std::int64_t nanoseconds, std::string& out) {
  append(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (nanoseconds == 0) return;
  if (nanoseconds % 1'000'000 == 0) {
    append(out, ".{:03}", nanoseconds / 1'000'000);
  } else if (nanoseconds % 1000 == 0) {
    append(out, ".{:06}", nanoseconds / 1000);
  } else {
    append(out, ".{:09}", nanoseconds);
  }
}

std::int64_t per_second(TimeUnit unit) {
  return unit == TimeUnit::kMilliseconds ? 1000 : unit == TimeUnit::kMicroseconds ? 1'000'000 : kNanosecondsPerSecond;
}

// Appends the time of a count since 1970, or since midnight.
void append_instant(std::int64_t count, const SchemaElement& element, std::string& out) {
  const std::int64_t units = per_second(element.unit), rest = (count % units + units) % units;
  const std::int64_t seconds = count / units - (count % units < 0 ? 1 : 0);
  const std::int64_t in_day = (seconds % kSecondsPerDay + kSecondsPerDay) % kSecondsPerDay;
  out += '"';
  if (element.meaning == Meaning::kTimestamp) {
    append_date((seconds - in_day) / kSecondsPerDay, out);
    out += 'T';
  }
  append_time(in_day, rest * (kNanosecondsPerSecond / units), out);
  if (element.is_utc && element.meaning == Meaning::kTimestamp) out += 'Z';
  out += '"';
}

// Impala's and older Spark's timestamps: nanoseconds of the day, and the Julian day.
void append_int96(std::string_view value, std::string& out) {
  constexpr std::int64_t kJulianDayOf1970 = 2'440'588;
  const auto nanoseconds = number_at<std::int64_t>(value);
  const auto day = number_at<std::int32_t>(value.substr(sizeof nanoseconds));
  if (nanoseconds < 0 || nanoseconds >= kSecondsPerDay * kNanosecondsPerSecond) {
    throw_damaged("a time of day has {} nanoseconds", nanoseconds);
  }
  out += '"';
  append_date(day - kJulianDayOf1970, out);
  out += 'T';
  append_time(nanoseconds / kNanosecondsPerSecond, nanoseconds % kNanosecondsPerSecond, out);
  out += '"';
}

// Digits of an integer given by its bytes in two's complement, the highest first, which become zeros; `is_negative`
// becomes its sign.
std::string digits_of(std::string& value, bool& is_negative) {
  is_negative = !value.empty() && (static_cast<unsigned char>(value[0]) & 0x80) != 0;
  if (is_negative) {  // its magnitude
    unsigned carry = 1;
    for (auto byte = value.rbegin(); byte != value.rend(); ++byte) {
      carry += static_cast<unsigned char>(~*byte);
      *byte = static_cast<char>(carry & 0xFF);
      carry >>= 8;
    }
  }
  std::string digits;
  while (std::ranges::any_of(value, [](char byte) { return byte != 0; })) {
    unsigned rest = 0;
    for (char& byte : value) {
      rest = rest << 8 | static_cast<unsigned char>(byte);
      byte = static_cast<char>(rest / 10);
      rest %= 10;
    }
    digits += static_cast<char>('0' + rest);
  }
  std::ranges::reverse(digits);
  return digits;
}

void append_decimal(const SchemaElement& element, std::string_view value, std::string& out) {
  constexpr std::size_t kLongest = 32;
  constexpr std::int32_t kMostDigits = 76;
  if (value.size() > kLongest) throw_unsupported("decimals of {} bytes", value.size());
  if (element.scale < 0 || element.scale > kMostDigits) throw_unsupported("decimals with the scale {}", element.scale);
  std::string bytes(value);
  const bool is_number = element.type == PhysicalType::kInt32 || element.type == PhysicalType::kInt64;
  if (is_number) std::ranges::reverse(bytes);
  bool is_negative = false;
  std::string digits = digits_of(bytes, is_negative);
  const auto scale = static_cast<std::size_t>(element.scale);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (scale > 0) digits.insert(digits.size() - scale, 1, '.');
  if (is_negative) out += '-';
  out += digits;
}

void append_uuid(std::string_view value, std::string& out) {
  out += '"';
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    append(out, "{:02x}", static_cast<unsigned char>(value[i]));
  }
  out += '"';
}

void append_bytes(std::string_view value, std::string& out) {
  if (is_utf8(value)) return append_json_string(value, out);
  append_json_string(base64_of(value), out);
}

void append_physical(const SchemaElement& element, std::string_view value, std::string& out) {
  switch (*element.type) {
    case PhysicalType::kBoolean: out += value[0] != 0 ? "true" : "false"; return;
    case PhysicalType::kInt32: return append(out, "{}", number_at<std::int32_t>(value));
    case PhysicalType::kInt64: return append(out, "{}", number_at<std::int64_t>(value));
    case PhysicalType::kInt96: return append_int96(value, out);
    case PhysicalType::kFloat: return append_float(number_at<float>(value), out);
    case PhysicalType::kDouble: return append_float(number_at<double>(value), out);
    case PhysicalType::kByteArray:
    case PhysicalType::kFixedByteArray: return append_bytes(value, out);
  }
}

}  // namespace

void append_json_value(const SchemaElement& element, std::string_view value, std::string& out) {
  const auto integer = [&] {
    return element.type == PhysicalType::kInt32 ? number_at<std::int32_t>(value) : number_at<std::int64_t>(value);
  };
  switch (element.meaning) {
    case Meaning::kText: return append_json_string(value, out);
    case Meaning::kBytes: return append_json_string(base64_of(value), out);
    case Meaning::kUnsigned:
      if (element.type == PhysicalType::kInt32) return append(out, "{}", number_at<std::uint32_t>(value));
      return append(out, "{}", number_at<std::uint64_t>(value));
    case Meaning::kHalf: return append_float(f16_to_float(number_at<std::uint16_t>(value)), out);
    case Meaning::kDecimal: return append_decimal(element, value, out);
    case Meaning::kDate:
      out += '"';
      append_date(integer(), out);
      out += '"';
      return;
    case Meaning::kTime:
    case Meaning::kTimestamp: return append_instant(integer(), element, out);
    case Meaning::kUuid: return append_uuid(value, out);
    case Meaning::kNothing: out += "null"; return;
    case Meaning::kInterval: throw_unsupported("intervals of time");
    default: return append_physical(element, value, out);
  }
}

}  // namespace teratron::parquet
