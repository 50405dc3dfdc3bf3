// Records as TensorBoard's own writer makes them, byte for byte, and what is made of damaged ones.
#include "telemetry/event_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/philox.h"

namespace teratron::testing {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(EventRecord, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

// The right sides were printed by tensorboard 2.21's RecordWriter, given the same messages of its event_pb2.
TEST(EventRecord, BytesAreThoseOfTensorBoardsOwnWriter) {
  EXPECT_EQ(record_of({.wall_time = 1.7e9 + 0.25, .file_version = "brain.Event:2"}),
            from_hex("1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"));
  EXPECT_EQ(record_of({.wall_time = 1.7e9 + 0.25,
                       .step = 1000000000000,
                       .scalars = {{"lm loss vs samples", 3.25F}, {"mfu", 0.1F}}}),
            from_hex("39000000000000008b0737f10900001040fc54d9411080a094a58d1d2a270a190a126c6d206c6f73"
                     "732076732073616d706c657315000050400a0a0a036d667515cdcccc3d7f0b691a"));
  EXPECT_EQ(record_of({.wall_time = 1.7e9 + 0.25, .step = 7, .texts = {{"sample", "so it was\n"}}}),
            from_hex("3700000000000000e7e8ca590900001040fc54d94110072a2a0a280a0673616d706c654214080712"
                     "0412020801420a736f206974207761730a4a080a060a0474657874e25b354d"));
}

TEST(EventRecord, ReadsBackAsWrittenAndShowsDamage) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 50; ++trial) {
    Event event{.wall_time = 1e9, .step = static_cast<std::int64_t>(random.next_u32()) << random.below(32)};
    const std::string tag(random.below(300), 't');
    event.scalars = {{tag, 1.5F}};
    for (std::size_t more = random.below(20); more > 0; --more) event.scalars.emplace_back("other", 2.0F);
    const std::string bytes = record_of(event);
    const std::string more = bytes + "what comes after it";
    const std::optional<EventRecord> record = first_record(more);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->bytes, bytes);
    EXPECT_EQ(record->step, event.step);
    EXPECT_EQ(record->tag, tag);
    EXPECT_FALSE(first_record(std::string_view(bytes).substr(0, random.below(bytes.size()))));
    std::string damaged = bytes;
    damaged[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
    EXPECT_FALSE(first_record(damaged));
  }
}

}  // namespace
}  // namespace teratron::testing
