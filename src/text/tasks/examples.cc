#include "tasks/examples.h"

#include <algorithm>
#include <bit>
#include <charconv>

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

}  // namespace teratron
