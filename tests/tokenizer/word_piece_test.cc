// WordPiece: against its definition, and properties that hold for every string of bytes. What Hugging Face makes of
// text is in word_piece_golden_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "tokenizer/tokenizer_fixture.h"
#include "tokenizer/word_piece_fixture.h"

namespace teratron::testing {
namespace {

using Ids = std::vector<std::int32_t>;

// The definition: from the beginning of a word on, always the longest token that fits; [UNK] where none does.
Ids cut_by_definition(const WordPieceModel& model, const std::string& word) {
  Ids ids;
  std::size_t at = 0;
  while (at < word.size()) {
    std::size_t length = word.size() - at;
    for (; length > 0; --length) {
      const std::string piece = (at > 0 ? model.prefix : "") + word.substr(at, length);
      const auto found = std::ranges::find(model.tokens, piece);
      if (found == model.tokens.end()) continue;
      ids.push_back(static_cast<std::int32_t>(found - model.tokens.begin()));
      break;
    }
    if (length == 0) return {model.unknown};
    at += length;
  }
  if (std::cmp_greater(word.size(), model.max_word_characters)) return {model.unknown};
  return ids;
}

TEST(WordPiece, FollowsTheDefinitionForRandomVocabulariesAndWordsMetAgain) {
  RandomSequence random = random_sequence(11);
  for (int trial = 0; trial < 60; ++trial) {
    const Tokenizer tokenizer = random_word_piece(random, "ab9c");
    const WordPieceModel& model = tokenizer.word_piece();
    std::string text;
    Ids expected;
    for (int i = 0; i < 200; ++i) {
      const std::string word = random_bytes(random, 1 + random.below(i % 10 == 0 ? 60 : 5), "ab9c");
      text += word + " ";
      for (const std::int32_t id : cut_by_definition(model, word)) expected.push_back(id);
    }
    ASSERT_EQ(tokenizer.encode(text), expected);
    ASSERT_EQ(tokenizer.encode(text), expected);
  }
}

TEST(WordPiece, LongWordsAreUnknownByTheirCharactersNotTheirBytes) {
  WordPieceModel model = word_piece_of({"a", "##a", "\u00DF", "##\u00DF"});
  model.max_word_characters = 7;
  const Tokenizer tokenizer(model);
  for (const std::string letter : {"a", "\u00DF"}) {
    std::string word;
    for (int i = 0; i < 7; ++i) word += letter;
    EXPECT_EQ(tokenizer.encode(word).size(), 7U) << letter;
    EXPECT_EQ(tokenizer.encode(word + letter), Ids{model.unknown}) << letter;
  }
}

// Of bytes that are no text, words and their places: spans follow one another, and each word of the text is one's own.
TEST(WordPiece, EncodesAnyBytesWithPlacesInOrderAndTheSameInAnyWay) {
  RandomSequence random = random_sequence(12);
  const std::string_view alphabets[] = {"", "ab. \n", "a\xCC\x81\xE4\xB8\xAD ", "e\x01\x7F\xFF\xC3\xA9 [MASK]"};
  for (int trial = 0; trial < 400; ++trial) {
    const std::string_view alphabet = alphabets[trial % 4];
    const Tokenizer tokenizer = random_word_piece(random, "aeb.");
    const std::string text = random_bytes(random, random.below(600), alphabet);
    for (const SpecialText special : {SpecialText::kPlain, SpecialText::kToken}) {
      const std::vector<TokenSpan> spans = tokenizer.encode_with_offsets(text, special);
      Ids ids;
      std::uint32_t begin = 0, end = 0;
      for (const TokenSpan& span : spans) {
        ids.push_back(span.id);
        ASSERT_LE(begin, span.begin);
        ASSERT_LE(end, span.end);
        ASSERT_LT(span.begin, span.end);
        ASSERT_LE(span.end, text.size());
        begin = span.begin;
        end = span.end;
      }
      ASSERT_EQ(tokenizer.encode(text, special), ids);
      ASSERT_NO_THROW(tokenizer.decode(ids));
    }
  }
}

TEST(WordPiece, DroppedCharactersLeaveNoTrace) {
  // No UTF-8, U+FFFD, controls, format characters, a private one.
  const std::string_view dropped[] = {"\xFF", "\xC3", "\xED\xA0\x80", "\uFFFD", "\x01",
                                      "\x7F", "\v",   "\u00AD",       "\u200B", "\uE000"};
  RandomSequence random = random_sequence(13);
  for (int trial = 0; trial < 200; ++trial) {
    const Tokenizer tokenizer = random_word_piece(random, "aeb.");
    const std::string text = random_bytes(random, random.below(100), "ab. ");
    std::string damaged;
    for (const char byte : text) {
      if (random.below(5) == 0) damaged += dropped[random.below(std::size(dropped))];
      damaged += byte;
    }
    ASSERT_EQ(tokenizer.encode(damaged), tokenizer.encode(text)) << damaged;
  }
}

TEST(WordPiece, EncodesInParallelAsInOnePiece) {
  RandomSequence random = random_sequence(14);
  const Tokenizer tokenizer = random_word_piece(random, "abc");
  for (const std::string_view alphabet : {"abc \n", "abc.\v\f ", "ab\xCC\x81\t", ""}) {
    const std::string text = random_bytes(random, 1 << 20, alphabet);
    EXPECT_EQ(tokenizer.encode_parallel(text), tokenizer.encode(text));
  }
}

TEST(WordPiece, AMegabyteWithoutSpacesTakesAMoment) {
  RandomSequence random = random_sequence(15);
  const Tokenizer tokenizer = random_word_piece(random, "abc");
  for (const char* unit : {"a", "\u00E9", "\u0301", "\u0323\u0301", "\u4E2D", "\x80", "\x01", "a\x01"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const std::clock_t start = std::clock();
    tokenizer.encode_with_offsets(text);
    EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC) << unit;  // takes 0.1 s; sanitizers are slow
  }
}

TEST(WordPiece, SpecialTokensInTextAreTextUnlessAskedFor) {
  const Tokenizer tokenizer(word_piece_of({"[", "]", "mask", "a", "b"}));
  const WordPieceModel& model = tokenizer.word_piece();
  const auto id = [&](std::string_view token) {
    return static_cast<std::int32_t>(std::ranges::find(model.tokens, token) - model.tokens.begin());
  };
  EXPECT_EQ(tokenizer.encode("a[MASK] b"), (Ids{id("a"), id("["), id("mask"), id("]"), id("b")}));
  EXPECT_EQ(tokenizer.encode("a[MASK] b", SpecialText::kToken), (Ids{id("a"), model.mask, id("b")}));
  EXPECT_EQ(tokenizer.encode_with_offsets("a[MASK] b", SpecialText::kToken),
            (std::vector<TokenSpan>{{id("a"), 0, 1}, {model.mask, 1, 7}, {id("b"), 8, 9}}));
  EXPECT_EQ(tokenizer.special_token("[SEP]"), model.separate);
  EXPECT_FALSE(tokenizer.end_of_text().has_value());
}

TEST(WordPiece, DecodesWordsWithSpacesBetweenThem) {
  const Tokenizer tokenizer(word_piece_of({"play", "##ing", "n't", ".", "\u00E9", "##s"}));
  EXPECT_EQ(tokenizer.decode(Ids{5, 6, 7, 8}), "playingn't.");
  EXPECT_EQ(tokenizer.decode(Ids{6, 9, 10, 2}), "##ing \u00E9s [CLS]");
  EXPECT_EQ(tokenizer.decode({}), "");
  EXPECT_EQ(tokenizer.bytes_of(5), " play");
  EXPECT_EQ(tokenizer.bytes_of(6), "ing");
  EXPECT_THROW(tokenizer.decode(Ids{5, 11}), UserError);
  EXPECT_THROW(tokenizer.decode(Ids{-1}), UserError);
}

TEST(WordPiece, EachKindHasItsOwnModelAlone) {
  EXPECT_EQ(small_tokenizer().kind(), TokenizerKind::kBytePair);
  EXPECT_THROW(small_tokenizer().word_piece(), InternalError);
  EXPECT_THROW(Tokenizer(word_piece_of({})).model(), InternalError);
}

// A setting that decides an id decides the hash; how texts are decoded does not.
TEST(WordPiece, TheHashDiffersWhereEncodingDiffers) {
  const WordPieceModel model = word_piece_of({"a", "b"});
  const std::string hash = hash_of(model);
  WordPieceModel other = model;
  other.clean_up = false;
  EXPECT_EQ(hash_of(other), hash);
  const auto changed = [&](const auto& change) {
    WordPieceModel copy = model;
    change(copy);
    return hash_of(copy);
  };
  const std::vector<std::string> hashes = {
      changed([](auto& m) { m.lower_case = false; }),     changed([](auto& m) { m.strip_accents = false; }),
      changed([](auto& m) { m.split_chinese = false; }),  changed([](auto& m) { m.max_word_characters = 99; }),
      changed([](auto& m) { m.prefix = "@@"; }),          changed([](auto& m) { std::swap(m.tokens[5], m.tokens[6]); }),
      changed([](auto& m) { std::swap(m.pad, m.mask); }), changed([](auto& m) { m.special.push_back(6); })};
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    EXPECT_NE(hashes[i], hash) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(hashes[i], hashes[j]) << i << " and " << j;
  }
}

TEST(Bpe, GivesTheBytesThatEachTokenComesFrom) {
  const Tokenizer tokenizer = small_tokenizer();
  RandomSequence random = random_sequence(16);
  for (int trial = 0; trial < 100; ++trial) {
    const std::string text = random_bytes(random, random.below(300), trial % 2 == 0 ? "" : "the of<|endoftext|>");
    for (const SpecialText special : {SpecialText::kPlain, SpecialText::kToken}) {
      const Ids ids = tokenizer.encode(text, special);
      const std::vector<TokenSpan> spans = tokenizer.encode_with_offsets(text + "<|endoftext|>", special);
      ASSERT_GE(spans.size(), ids.size());
      std::uint32_t at = 0;
      for (const TokenSpan& span : spans) {
        ASSERT_EQ(span.begin, at);
        at = span.end;
        ASSERT_EQ((text + "<|endoftext|>").substr(span.begin, span.end - span.begin), tokenizer.bytes_of(span.id));
      }
      ASSERT_EQ(at, text.size() + 13);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
