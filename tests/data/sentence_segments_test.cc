// Segments against the rules that they are cut by, checked on every sentence of random corpora.
#include "data/samples/sentence_segments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/host/threads.h"
#include "data/bert_fixture.h"

namespace teratron::testing {
namespace {

class Segments : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }

  void make_corpus() {
    const RandomSentences corpus(random_, std::int64_t{1} << below(11), 1 + below(40), 1 + below(30));
    write_sentences(folder_ / "corpus", corpus.documents, 1 << 30);
    dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
    const SplitRule rule = below(2) == 0 ? SplitRule{.seed = random_()} : kFileOrder;
    const auto parts = split_corpus(*dataset_, std::vector<double>{3, 1, 1}, rule);
    part_ = parts[static_cast<std::size_t>(below(3))];
    longest_ = 2 + below(60);
    short_share_ = std::vector<double>{0, 0.1, 0.5, 1}[static_cast<std::size_t>(below(4))];
    seed_ = random_();
  }
  SentenceSegments segments() const { return {*dataset_, part_, longest_, short_share_, seed_}; }

  // Sentences with tokens, all of whose tokens the part has of its document; none where there are fewer than two.
  std::vector<std::int64_t> sentences_of(std::int64_t document) const {
    const TokenRange own = part_.document(*dataset_, document);
    const std::int64_t number = part_.number(document);
    std::vector<std::int64_t> sentences;
    for (std::int64_t at = dataset_->first_sequence(number); at < dataset_->first_sequence(number + 1); ++at) {
      const TokenRange range = dataset_->sequence(at);
      if (range.size() > 0 && range.begin >= own.begin && range.end <= own.end) sentences.push_back(at);
    }
    if (sentences.size() < 2) sentences.clear();
    return sentences;
  }

  const TemporaryFolder folder_;
  std::mt19937_64 random_{1};
  std::shared_ptr<const IndexedDataset> dataset_;
  CorpusPart part_;
  std::int64_t longest_ = 2;
  double short_share_ = 0;
  std::uint64_t seed_ = 0;
};

TEST_F(Segments, HoldEverySentenceOnceAndEndWhereTheRuleSays) {
  for (int round = 0; round < 150; ++round) {
    make_corpus();
    const SentenceSegments all = segments();
    std::int64_t index = 0, documents = 0, sentences = 0;
    for (std::int64_t document = 0; document < part_.documents(); ++document) {
      const std::vector<std::int64_t> expected = sentences_of(document);
      documents += expected.empty() ? 0 : 1;
      sentences += std::ssize(expected);
      for (std::size_t at = 0; at < expected.size();) {
        ASSERT_LT(index, all.count());
        const SentenceSegment segment = all[index++];
        ASSERT_EQ(segment.first, expected[at]);
        ASSERT_GE(segment.target, 2);
        ASSERT_LE(segment.target, longest_);
        std::int64_t tokens = 0, count = 0;
        bool was_enough = false;  // before its last sentence, and with two left behind
        for (; at < expected.size() && expected[at] < segment.end; ++at, ++count) {
          was_enough = was_enough || (tokens >= segment.target && count >= 2 && expected.size() - at >= 2);
          tokens += dataset_->sequence(expected[at]).size();
        }
        ASSERT_GE(count, 2);
        ASSERT_FALSE(was_enough) << "goes on too long";
        const std::size_t behind = expected.size() - at;
        ASSERT_TRUE(behind == 0 || (tokens >= segment.target && behind >= 2)) << "ends too early";
      }
    }
    ASSERT_EQ(all.count(), index);
    ASSERT_EQ(all.documents(), documents);
    ASSERT_EQ(all.sentences(), sentences);
  }
}

TEST_F(Segments, AreTheSameWhateverThreadsCutThem) {
  const int threads = thread_count();
  for (int round = 0; round < 20; ++round) {
    make_corpus();
    set_thread_count(1);
    const SentenceSegments one = segments();
    set_thread_count(4);
    const SentenceSegments many = segments();
    ASSERT_EQ(one.count(), many.count());
    for (std::int64_t i = one.count() - 1; i >= 0; --i) ASSERT_EQ(one[i], many[i]);
  }
  set_thread_count(threads);
}

// A tenth of the segments draws its target from 2, ..., longest, which is `longest` itself once in longest - 1 times.
// Of n segments, a share p has a standard deviation of sqrt(p (1 - p) / n), and the mean of n even draws from k values
// one of sqrt((k^2 - 1) / 12 n).
TEST_F(Segments, ATenthIsShort) {
  constexpr std::int64_t kLongest = 21;
  const std::vector<std::vector<Document>> documents(40, std::vector<Document>(10'000, Document(5, 7)));
  write_sentences(folder_ / "corpus", documents, 100);
  const IndexedDataset dataset = IndexedDataset::open(folder_ / "corpus");
  const SentenceSegments all(dataset, split_corpus(dataset, std::vector<double>{1}, kFileOrder).front(), kLongest, 0.1,
                             5);
  double shorter = 0, sum = 0;
  for (std::int64_t i = 0; i < all.count(); ++i) {
    const std::int64_t target = all[i].target;
    shorter += target < kLongest ? 1 : 0;
    sum += target < kLongest ? static_cast<double>(target) : 0;
  }
  const auto n = static_cast<double>(all.count());
  ASSERT_GT(n, 50'000);
  const double p = 0.1 * (kLongest - 2) / (kLongest - 1);
  EXPECT_NEAR(shorter / n, p, 3 * std::sqrt(p * (1 - p) / n));
  constexpr double kValues = kLongest - 2;  // 2, ..., kLongest - 1
  EXPECT_NEAR(sum / shorter, 2 + (kValues - 1) / 2, 3 * std::sqrt((kValues * kValues - 1) / (12 * shorter)));
}

}  // namespace
}  // namespace teratron::testing
