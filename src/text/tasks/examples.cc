#include "tasks/examples.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <unordered_set>

#include "base/files/checksum.h"

namespace teratron {
namespace {

template <class Value>
void add_list(Checksum& checksum, const std::vector<Value>& values) {
  const std::int64_t count = std::ssize(values);  // so that no value can move from one list to the next
  checksum.update(std::as_bytes(std::span(&count, 1)));
  checksum.update(std::as_bytes(std::span(values)));
}

}  // namespace

std::int64_t TaskExamples::checksum() const {
  Checksum checksum;
  checksum.update(std::as_bytes(std::span(&sequences_each, 1)));
  add_list(checksum, ids);
  add_list(checksum, begins);
  add_list(checksum, seconds);
  add_list(checksum, labels);
  const std::string digits = checksum.digest();
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, /*base=*/16);
  return value == 0 ? 1 : std::bit_cast<std::int64_t>(value);
}

std::int64_t TaskExamples::longest() const {
  std::int64_t most = 0;
  for (std::int64_t number = 0; number < sequences(); ++number) most = std::max(most, length(number));
  return most;
}

std::int64_t TaskExamples::longest_of(std::int64_t example) const {
  std::int64_t most = 0;
  for (std::int64_t k = 0; k < sequences_each; ++k) most = std::max(most, length(example * sequences_each + k));
  return most;
}

std::string_view TaskExamples::bytes_of(std::int64_t example) const {
  const auto first = static_cast<std::size_t>(example * sequences_each);
  const auto begin = static_cast<std::size_t>(begins[first]);
  const auto end = static_cast<std::size_t>(begins[first + static_cast<std::size_t>(sequences_each)]);
  const auto bytes = std::as_bytes(std::span(ids).subspan(begin, end - begin));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::int64_t TaskExamples::count_in(const TaskExamples& other) const {
  std::unordered_set<std::string_view> known;
  for (std::int64_t example = 0; example < other.count(); ++example) known.insert(other.bytes_of(example));
  std::int64_t found = 0;
  for (std::int64_t example = 0; example < count(); ++example) found += known.contains(bytes_of(example)) ? 1 : 0;
  return found;
}

}  // namespace teratron
