// Records of TensorBoard's event files: the bytes as they are, and framed with the checksums that a fuzzer never
// guesses.
#include <cstdint>
#include <cstring>

#include "fuzz.h"
#include "telemetry/event_record.h"

namespace {

template <class Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string checksum(std::string_view bytes) {  // as TFRecord masks it
  const std::uint32_t sum = teratron::crc32c(bytes);
  return bytes_of(((sum >> 15) | (sum << 17)) + 0xA282EAD8U);
}

int records_of(std::string_view bytes) {
  int records = 0;
  for (; const auto record = teratron::first_record(bytes); ++records) bytes.remove_prefix(record->bytes.size());
  return records;
}

}  // namespace

void teratron::fuzz::parse(std::string_view input) {
  records_of(input);
  const std::string length = bytes_of(std::uint64_t{input.size()});
  const std::string framed = length + checksum(length) + std::string(input) + checksum(input);
  records_of(framed + framed);
}
