// The Bloom filter against its bound, and overlaps against a slow definition.
#include "corpus/overlap/overlap.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/philox.h"
#include "corpus/overlap/bloom_filter.h"
#include "corpus/stage_fixture.h"

namespace teratron::testing {
namespace {

TEST(BloomFilter, HasWhatWasAddedAndLittleElse) {
  RandomSequence random(RandomStream{.seed = 8});
  const auto any = [&] { return random.below(~std::uint64_t{0}); };
  for (const double bound : {1e-1, 1e-2, 1e-3}) {
    BloomFilter filter(bound, /*first_capacity=*/1000);
    std::vector<std::uint64_t> added(30'000);
    for (std::uint64_t& element : added) filter.add(element = any());
    for (const std::uint64_t element : added) ASSERT_TRUE(filter.may_have(element));
    int wrong = 0;
    constexpr int kTrials = 100'000;
    for (int trial = 0; trial < kTrials; ++trial) wrong += filter.may_have(any()) ? 1 : 0;
    const double expected = bound * kTrials;
    EXPECT_LT(wrong, expected + 5 * std::sqrt(expected)) << bound;  // five deviations
    EXPECT_GT(wrong, 0) << bound;                                   // nor is it larger than it has to be
    EXPECT_LE(filter.elements(), std::ssize(added));
    EXPECT_GE(static_cast<double>(filter.elements()), static_cast<double>(added.size()) * (1 - bound));
    EXPECT_LT(filter.bytes() * 8, std::ssize(added) * 45);
  }
}

TEST(BloomFilter, SmallNumbersAreElementsLikeOthers) {
  BloomFilter filter(1e-3);
  for (std::uint64_t i = 0; i < 10'000; i += 2) filter.add(i);
  int wrong = 0;
  for (std::uint64_t i = 1; i < 10'000; i += 2) wrong += filter.may_have(i) ? 1 : 0;
  EXPECT_LT(wrong, 20);
}

class Overlap : public StageTest {
 protected:
  using Words = std::vector<std::string>;

  static std::vector<Words> random_documents(RandomSequence& random, std::uint64_t most) {
    std::vector<Words> documents(1 + random.below(most));
    for (Words& words : documents) {
      words.resize(random.below(30));
      for (std::string& word : words) word = std::string(1, static_cast<char>('a' + random.below(3)));
    }
    return documents;
  }
  static std::vector<Words> ngrams_of_words(const std::vector<Words>& documents, std::size_t count) {
    std::vector<Words> ngrams;
    for (const Words& words : documents) {
      const std::size_t length = std::min(count, words.size());
      for (std::size_t i = 0; length > 0 && i + length <= words.size(); ++i) {
        ngrams.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(i),
                            words.begin() + static_cast<std::ptrdiff_t>(i + length));
      }
    }
    return ngrams;
  }
  std::filesystem::path write(const std::string& name, const std::vector<Words>& documents) {
    std::vector<std::string> texts;
    for (const Words& words : documents) texts.push_back(fmt::format("{}", fmt::join(words, " ")));
    write_file_atomically(folder_ / name, as_json_lines(texts));
    return folder_ / name;
  }
};

TEST_F(Overlap, IsTheShareOfTestNgramsThatTrainingHas) {
  RandomSequence random(RandomStream{.seed = 15});
  for (int trial = 0; trial < 40; ++trial) {
    auto training = random_documents(random, 20), test = random_documents(random, 10);
    training.push_back({"a"});  // so that there is something
    test.push_back({"a"});
    const auto count = static_cast<std::int64_t>(1 + random.below(7));
    const auto known = ngrams_of_words(training, static_cast<std::size_t>(count));
    const std::set<std::vector<std::string>> known_set(known.begin(), known.end());
    const auto asked = ngrams_of_words(test, static_cast<std::size_t>(count));
    const std::set<std::vector<std::string>> asked_set(asked.begin(), asked.end());
    const auto is_known = [&](const auto& ngram) { return known_set.contains(ngram); };
    OverlapOptions options{.training = {write("training.jsonl", training)},
                           .test = {write("test.jsonl", test)},
                           .ngram = count,
                           .exact = true};
    const OverlapCounts exact = overlap(options);
    EXPECT_EQ(exact.test_ngrams, std::ssize(asked));
    EXPECT_EQ(exact.training_ngrams, std::ssize(known));
    EXPECT_EQ(exact.found, std::ranges::count_if(asked, is_known));
    EXPECT_EQ(exact.distinct_ngrams, std::ssize(asked_set));
    EXPECT_EQ(exact.distinct_found, std::ranges::count_if(asked_set, is_known));
    options.exact = false;
    const OverlapCounts bloom = overlap(options);
    EXPECT_GE(bloom.found, exact.found);
    EXPECT_LE(bloom.distinct_found, exact.distinct_found + 2);
    EXPECT_GT(bloom.filter_bytes, 0);
  }
}

TEST_F(Overlap, FilterStaysWithinItsBound) {
  RandomSequence random(RandomStream{.seed = 16});
  std::vector<std::string> training, test;
  for (int i = 0; i < 40'000; ++i) training.push_back(fmt::format("x{} y{}", random.below(1 << 30), i));
  for (int i = 0; i < 40'000; ++i)
    test.push_back(i % 10 == 0 ? training[static_cast<std::size_t>(i)] : fmt::format("z{} w", i));
  write_file_atomically(folder_ / "training.jsonl", as_json_lines(training));
  write_file_atomically(folder_ / "test.jsonl", as_json_lines(test));
  OverlapOptions options{.training = {folder_ / "training.jsonl"},
                         .test = {folder_ / "test.jsonl"},
                         .ngram = 2,
                         .false_positives = 0.01,
                         .exact = true};
  EXPECT_EQ(overlap(options).found, 4000);
  options.exact = false;
  const auto found = overlap(options).found;
  EXPECT_GE(found, 4000);
  EXPECT_LE(found, 4000 + 360 + 5 * 19);  // a hundredth of 36,000, and five deviations
}

// RACE has its text under "article", LAMBADA under "text".
TEST_F(Overlap, TheTestSetsTextMayHaveAnotherKey) {
  write_file_atomically(folder_ / "training.jsonl", R"({"article": "a b c", "text": "x y z"})");
  write_file_atomically(folder_ / "test.jsonl", R"({"article": "x y z", "text": "a b c"})");
  OverlapOptions options{.training = {folder_ / "training.jsonl"},
                         .test = {folder_ / "test.jsonl"},
                         .text_key = "article",
                         .ngram = 3,
                         .exact = true};
  EXPECT_EQ(overlap(options).found, 0);
  options.test_text_key = "text";
  EXPECT_EQ(overlap(options).found, 1);
}

TEST_F(Overlap, ATestSetWithoutWordsIsAnError) {
  write_file_atomically(folder_ / "training.txt", "a b c");
  write_file_atomically(folder_ / "test.txt", "...");
  EXPECT_THROW(overlap({.training = {folder_ / "training.txt"}, .test = {folder_ / "test.txt"}}), UserError);
}

TEST_F(Overlap, ATrainingSetWithoutWordsIsAnError) {
  write_file_atomically(folder_ / "test.txt", "a b c");
  for (const char* training : {"", "...", "\n"}) {
    write_file_atomically(folder_ / "training.txt", training);
    for (const bool exact : {false, true}) {
      EXPECT_THROW(overlap({.training = {folder_ / "training.txt"}, .test = {folder_ / "test.txt"}, .exact = exact}),
                   UserError);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
