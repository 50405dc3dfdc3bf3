// Records of TensorBoard's event files: an Event of tensorboard/compat/proto/event.proto in protobuf's wire format,
// framed as in TFRecord: length, its checksum, message, its checksum. Only fields of curves and texts are written.
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
  std::string file_version;                            // "brain.Event:2" in a file's first record; else empty
  std::vector<std::pair<std::string, float>> scalars;  // tag and value
  std::vector<std::pair<std::string, std::string>> texts;
};

std::string record_of(const Event& event);

// Record as a resumed run needs it, to keep or drop it.
struct EventRecord {
  std::string_view bytes;  // including the frame
  std::int64_t step = 0;
  std::string_view tag;  // of its first value; empty: no value
};

// Record at the beginning of `bytes`; nullopt: truncated or damaged.
std::optional<EventRecord> first_record(std::string_view bytes);

// CRC-32C (Castagnoli), as in iSCSI (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

}  // namespace teratron
