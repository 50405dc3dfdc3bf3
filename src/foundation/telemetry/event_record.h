// The records of TensorBoard's event files: an Event of tensorboard/compat/proto/event.proto in protobuf's wire format,
// framed as TFRecord does: length, its checksum, the message, its checksum. Of the message only what curves
// and texts need is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron {

struct Event {
  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string file_version;                            // "brain.Event:2" in the first record of a file; empty elsewhere
  std::vector<std::pair<std::string, float>> scalars;  // tag and value
  std::vector<std::pair<std::string, std::string>> texts;
};

std::string record_of(const Event& event);

// What tells whether a record is kept.
struct EventRecord {
  std::string_view bytes;  // with the frame
  std::int64_t step = 0;
  std::string_view tag;  // of its first value; empty: it has none
};

// The record that `bytes` begins with; nothing where it is cut short or damaged.
std::optional<EventRecord> first_record(std::string_view bytes);

// CRC-32C (Castagnoli), as iSCSI has it (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

}  // namespace teratron
