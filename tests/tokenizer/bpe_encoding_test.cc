// Encoding and decoding: against the definition of BPE, and properties that hold for every string of bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/error.h"
#include "base/host/threads.h"
#include "tokenizer/bpe/bpe_encoder.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using Ids = std::vector<std::int32_t>;

// The definition: while any neighbours merge, join the pair of lowest rank, the leftmost of equals.
Ids merge_by_definition(const BpeModel& model, std::string_view word) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < model.merges.size(); ++rank) {
    rank_of[{model.merges[rank].left, model.merges[rank].right}] = rank;
  }
  Ids ids;
  for (const char byte : word) {
    const auto at = std::find(model.tokens.begin(), model.tokens.end(), std::string(1, byte)) - model.tokens.begin();
    ids.push_back(static_cast<std::int32_t>(at));
  }
  while (true) {
    std::size_t best = model.merges.size(), where = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rank_of.find({ids[i], ids[i + 1]});
      if (found != rank_of.end() && found->second < best) {
        best = found->second;
        where = i;
      }
    }
    if (best == model.merges.size()) return ids;
    ids[where] = model.merges[best].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

// Merges of random tokens of a's, b's and c's: unlike trained ones they may come in any order, and make a token twice.
BpeModel random_model(RandomSequence& random) {
  const std::string_view text = "-";
  BpeModel model = train_bpe({&text, 1}, {.vocab_size = 256, .special = {}});
  std::map<std::string, std::int32_t> id_of;
  for (const char c : {'a', 'b', 'c'}) {
    id_of[{c}] = static_cast<std::int32_t>(std::ranges::find(model.tokens, std::string{c}) - model.tokens.begin());
  }
  std::map<std::pair<std::int32_t, std::int32_t>, bool> seen;
  for (int i = 0; i < 40; ++i) {
    const auto pick = [&] { return std::next(id_of.begin(), static_cast<std::ptrdiff_t>(random.below(id_of.size()))); };
    const auto left = pick(), right = pick();
    if (left->first.size() + right->first.size() > 8 || seen[{left->second, right->second}]) continue;
    seen[{left->second, right->second}] = true;
    const std::string joined = left->first + right->first;
    const auto [merged, is_new] = id_of.try_emplace(joined, static_cast<std::int32_t>(model.tokens.size()));
    if (is_new) model.tokens.push_back(joined);
    model.merges.push_back({left->second, right->second, merged->second});
  }
  for (std::size_t i = model.merges.size(); i > 1; --i) std::swap(model.merges[i - 1], model.merges[random.below(i)]);
  return model;
}

TEST(BpeMerging, FollowsTheDefinitionForShortAndLongWordsAndAnyMergeList) {
  RandomSequence random = random_sequence(3);
  for (int trial = 0; trial < 60; ++trial) {
    const BpeModel model = random_model(random);
    validate(model, "random model");
    const MergeTable table(model);
    WordMerger merger(table);
    for (const std::size_t length : {1, 2, 3, 7, 20, 63, 64, 65, 66, 130, 300}) {
      const std::string word = random_bytes(random, length, trial % 2 == 0 ? "ab" : "abc");
      Ids ids;
      merger.append(word, ids);
      ASSERT_EQ(ids, merge_by_definition(model, word)) << word;
    }
  }
}

TEST(Bpe, DecodingAnEncodingGivesTheBytesBack) {
  const Tokenizer tokenizer = small_tokenizer();
  RandomSequence random = random_sequence(4);
  for (int trial = 0; trial < 500; ++trial) {
    const std::string_view alphabet = trial % 3 == 0 ? "" : trial % 3 == 1 ? "the of'\n \xE2\x80\x99" : "\xFF\xC3 a";
    const std::string bytes = random_bytes(random, random.below(400), alphabet);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
  }
}

// The cache is direct-mapped, and words of 23 bytes or 9 tokens are the last that it takes.
TEST(Bpe, AWordHasTheSameTokensWhenItIsMetAgain) {
  const Tokenizer tokenizer = small_tokenizer();
  RandomSequence random = random_sequence(5);
  std::vector<std::string> words;
  for (int i = 0; i < 60000; ++i) words.push_back(random_bytes(random, 1 + random.below(26), "theofainrs"));
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (std::size_t i = 0; i < words.size(); i += 1 + random.below(3)) {
      const Ids ids = tokenizer.encode(words[i]);
      if (i % 16 == 0) {
        ASSERT_EQ(ids, merge_by_definition(tokenizer.model(), words[i])) << words[i];
      }
      ASSERT_EQ(tokenizer.decode(ids), words[i]);
    }
  }
}

TEST(Bpe, EncodesWordByWord) {
  const Tokenizer tokenizer = small_tokenizer();
  const std::string text = "this truth is well known; isn't it?  The  views\n\nof 19 daughters";
  Ids expected;
  for (const char* word : {"this", " truth", " is", " well", " known", ";", " isn", "'t", " it", "?", " ", " The", " ",
                           " views", "\n", "\n", "of", " 19", " daughters"}) {
    for (const std::int32_t id : merge_by_definition(tokenizer.model(), word)) expected.push_back(id);
  }
  EXPECT_EQ(tokenizer.encode(text), expected);
}

TEST(Bpe, AppendsToWhatIsThere) {
  const Tokenizer tokenizer = small_tokenizer();
  Ids ids = {7};
  tokenizer.encode_to("the man", ids);
  Ids expected = tokenizer.encode("the man");
  expected.insert(expected.begin(), 7);
  EXPECT_EQ(ids, expected);
}

TEST(Bpe, AMegabyteOfOneLetterTakesAMomentNotAnHour) {
  const Tokenizer tokenizer = small_tokenizer();
  for (const char* unit : {"e", " ", "-", "the", "\xC3\xA9", "\x80"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const std::clock_t start = std::clock();  // processor time: other programs do not count
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC) << unit;  // takes 0.1 s; sanitizers are slow
  }
}

TEST(Bpe, EncodesTheSameFromManyThreadsAtOnce) {
  const Tokenizer tokenizer = small_tokenizer();
  RandomSequence random = random_sequence(6);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 200; ++i) {
    texts.push_back(random_bytes(random, 2000, "the of a man is, in"));
    expected.push_back(small_tokenizer().encode(texts.back()));
  }
  const int threads = thread_count();
  set_thread_count(8);
  std::vector<Ids> ids(texts.size());
  parallel_for(std::ssize(texts), 1, [&](std::int64_t begin, std::int64_t) {
    ids[static_cast<std::size_t>(begin)] = tokenizer.encode(texts[static_cast<std::size_t>(begin)]);
  });
  EXPECT_EQ(ids, expected);
  set_thread_count(threads);
}

TEST(Bpe, EncodesALongTextInPartsAsInOnePiece) {
  const Tokenizer tokenizer = small_tokenizer();
  RandomSequence random = random_sequence(7);
  const std::string words = random_bytes(random, 900000, "the of a man\n is, in  ");
  const std::string no_place_to_cut = random_bytes(random, 900000, "abc");
  for (const std::string& text : {words, no_place_to_cut, words + no_place_to_cut + words, std::string()}) {
    EXPECT_EQ(tokenizer.encode_parallel(text), tokenizer.encode(text));
  }
}

TEST(Bpe, RefusesToDecodeIdsOutsideTheVocabulary) {
  const Tokenizer tokenizer = small_tokenizer();
  for (const std::int32_t id : {-1, 300, 1 << 30}) {
    EXPECT_THROW(tokenizer.decode(Ids{5, id}), UserError) << id;
    EXPECT_THROW(tokenizer.bytes_of(id), UserError) << id;
  }
}

TEST(SpecialTokens, AreTextUnlessAskedFor) {
  const Tokenizer tokenizer = small_tokenizer();
  ASSERT_EQ(tokenizer.end_of_text(), 299);
  const std::string text = "a man<|endoftext|><|endoftext|> is";
  for (const std::int32_t id : tokenizer.encode(text)) EXPECT_LT(id, 299);
  Ids expected = tokenizer.encode("a man");
  expected.insert(expected.end(), {299, 299});
  tokenizer.encode_to(" is", expected);
  EXPECT_EQ(tokenizer.encode(text, SpecialText::kToken), expected);
  EXPECT_EQ(tokenizer.decode(expected), text);
}

TEST(SpecialTokens, TheLongestAtAPlaceIsTaken) {
  const std::string_view text = "text";
  const Tokenizer tokenizer(train_bpe({&text, 1}, {.vocab_size = 260, .special = {"<a>", "<a>b!", "<c>"}}));
  const auto id = [&](const char* special) { return tokenizer.special_token(special).value(); };
  EXPECT_EQ(tokenizer.encode("<a>b!<a><c>", SpecialText::kToken), (Ids{id("<a>b!"), id("<a>"), id("<c>")}));
  EXPECT_FALSE(tokenizer.end_of_text().has_value());
  EXPECT_FALSE(tokenizer.special_token("text").has_value());
}

}  // namespace
}  // namespace teratron::testing
