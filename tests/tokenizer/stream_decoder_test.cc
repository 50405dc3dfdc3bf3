// Streaming text out: whole characters only, and nothing lost.
#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

// The outcome byte by byte, with '|' after each push.
std::string stream(std::string_view bytes) {
  StreamDecoder decoder(small_tokenizer());
  std::string out;
  for (const char byte : bytes) out += decoder.push_bytes({&byte, 1}) + "|";
  return out + decoder.finish();
}

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  EXPECT_EQ(stream("a\u00E9\u20AC\U0001F600"), "a||\u00E9|||\u20AC||||\U0001F600|");
}

TEST(StreamDecoder, ReplacesWhatCannotBeACharacter) {
  EXPECT_EQ(stream("\xFFz"), "\uFFFD|z|");
  EXPECT_EQ(stream("\xE2\x82z"), "||\uFFFDz|");                // one for the begun character
  EXPECT_EQ(stream("\xE2\x82"), "||\uFFFD");                   // also at the end
  EXPECT_EQ(stream("\xED\xA0\x80"), "|\uFFFD\uFFFD|\uFFFD|");  // a surrogate: no part of it begins a character
  EXPECT_EQ(stream("\xF4\x90"), "|\uFFFD\uFFFD|");             // above U+10FFFF
}

TEST(StreamDecoder, GivesTheTextBackTokenByToken) {
  const Tokenizer tokenizer = small_tokenizer();
  StreamDecoder decoder(tokenizer);
  const std::string text = "the man \u2014 na\u00EFve \U0001F468\u200D\U0001F469\u200D\U0001F467 \u4E2D\u6587";
  std::string out;
  for (const std::int32_t id : tokenizer.encode(text)) out += decoder.push(id);
  EXPECT_EQ(out + decoder.finish(), text);
}

TEST(StreamDecoder, EmitsOnlyUtf8AndTheSameHoweverTheBytesAreCut) {
  const Tokenizer tokenizer = small_tokenizer();
  RandomSequence random = random_sequence(9);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::string bytes =
        random_bytes(random, random.below(30), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xED\xC0\xFF");
    StreamDecoder whole(tokenizer), parts(tokenizer);
    std::string expected = whole.push_bytes(bytes);
    expected += whole.finish();
    std::string out;
    for (std::size_t begin = 0; begin < bytes.size();) {
      const std::size_t length = std::min(bytes.size() - begin, 1 + random.below(4));
      const std::string part = parts.push_bytes(std::string_view(bytes).substr(begin, length));
      ASSERT_TRUE(is_utf8(part));
      out += part;
      begin += length;
    }
    out += parts.finish();
    ASSERT_EQ(out, expected);
    ASSERT_TRUE(is_utf8(out));
  }
}

}  // namespace
}  // namespace teratron::testing
