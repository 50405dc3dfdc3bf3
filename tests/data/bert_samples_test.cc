// BERT's samples, taken apart again: the tokens of random corpora count on, so that each sample tells which sentences
// it was made of, what was cut off them, and what was masked.
#include "data/samples/bert_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "base/counted.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "base/trials.h"
#include "data/bert_fixture.h"
#include "data/samples/blended_samples.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PairsOfSentences : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }

  // Parts with something to read, of all kinds.
  void make_corpus() {
    while (true) {
      const RandomSentences corpus(random_, std::int64_t{1} << below(9), 1 + below(12),
                                   1 + below(below(5) == 0 ? 150 : 20));
      write_sentences(folder_ / "corpus", corpus.documents, 1 << 30);
      dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
      tokens_ = random_tokens(random_, corpus.end, 0.3, below(3) == 0 ? 0.2 : 0);
      const SplitRule rule = below(2) == 0 ? SplitRule{.seed = random_()} : kFileOrder;
      part_ = split_corpus(*dataset_, std::vector<double>{3, 1, 1}, rule)[static_cast<std::size_t>(below(3))];
      seq_length_ = BertSamples::kShortestSequence + below(60);
      order_ = below(2) == 0 ? SampleOrder::kSequential : SampleOrder::kShuffled;
      seed_ = random_();
      options_.short_seq_prob = below(2) == 0 ? 0.1 : 0.7;
      if (segments().count() > 0) return;
    }
  }
  SentenceSegments segments() const { return {*dataset_, part_, seq_length_ - 3, options_.short_seq_prob, seed_}; }
  std::unique_ptr<const BertSamples> samples() const {
    return std::make_unique<const BertSamples>(dataset_, part_, seq_length_, order_, seed_, tokens_, options_);
  }

  const TemporaryFolder folder_;
  std::mt19937_64 random_{1};
  std::shared_ptr<const IndexedDataset> dataset_;
  BertTokens tokens_;
  CorpusPart part_;
  std::int64_t seq_length_ = 0;
  SampleOrder order_ = SampleOrder::kShuffled;
  std::uint64_t seed_ = 0;
  BertOptions options_;
};

// Sample `at` of a batch by itself.
struct Sample {
  Document ids, types, targets;
  std::vector<float> weights;
  std::int64_t length;  // without the padding
  bool is_swapped;
  Document a, b;

  Sample(const SampleBatch& batch, std::int64_t at, std::int64_t seq_length, const BertTokens& tokens)
      : length(batch.key_lengths[static_cast<std::size_t>(at)]),
        is_swapped(batch.labels[static_cast<std::size_t>(at)] == 1) {
    const auto cut = [&](const auto& of_all, auto& own) {
      own.assign(of_all.begin() + at * seq_length, of_all.begin() + (at + 1) * seq_length);
    };
    cut(batch.ids, ids);
    cut(batch.token_types, types);
    cut(batch.targets, targets);
    cut(batch.weights, weights);
    const auto first = std::ranges::find(targets, tokens.separate);
    a.assign(targets.begin() + 1, first);
    b.assign(first + 1, targets.begin() + length - 1);
  }
};

void check_layout(const Sample& sample, const BertTokens& tokens) {
  ASSERT_FALSE(sample.a.empty());
  ASSERT_FALSE(sample.b.empty());
  Document ids = {tokens.classify};
  ids.insert(ids.end(), sample.a.begin(), sample.a.end());
  ids.push_back(tokens.separate);
  Document types(ids.size(), 0);
  ids.insert(ids.end(), sample.b.begin(), sample.b.end());
  ids.push_back(tokens.separate);
  types.resize(ids.size(), 1);
  ASSERT_EQ(sample.length, std::ssize(ids));
  ids.resize(sample.ids.size(), tokens.pad);
  types.resize(sample.ids.size(), 0);
  ASSERT_EQ(sample.targets, ids);
  ASSERT_EQ(sample.types, types);
}

// Whole words only, no special token, one at least where there is a word, and no more than the share; what is not
// masked is as it was.
void check_masks(const Sample& sample, const BertTokens& tokens) {
  const auto is_special = [&](std::int32_t id) { return tokens.is_special[static_cast<std::size_t>(id)]; };
  const auto goes_on = [&](std::size_t i) {
    return !is_special(sample.targets[i]) && !is_special(sample.targets[i - 1]) &&
           tokens.continues_word[static_cast<std::size_t>(sample.targets[i])];
  };
  std::int64_t words = 0, masked = 0, shortest = 1 << 30, size = 0;
  for (std::size_t i = 0; i < sample.ids.size(); ++i) {
    const std::int32_t id = sample.ids[i], target = sample.targets[i];
    if (sample.weights[i] == 0) {
      ASSERT_EQ(id, target);
    } else {
      ASSERT_EQ(sample.weights[i], 1);
      ASSERT_FALSE(is_special(target));
      ASSERT_TRUE(id == tokens.mask || !is_special(id));
      ++masked;
    }
    if (is_special(target)) continue;
    if (goes_on(i)) {
      ASSERT_EQ(sample.weights[i], sample.weights[i - 1]) << "part of a word";
      ++size;
    } else {
      ++words;
      size = 1;
    }
    if (i + 1 == sample.ids.size() || !goes_on(i + 1)) shortest = std::min(shortest, size);
  }
  const std::int64_t budget = masking_budget(sample.length, 0.15);
  ASSERT_EQ(masked > 0, words > 0);
  ASSERT_TRUE(masked <= budget || masked == shortest) << masked << " masked of " << sample.length;
}

// Megatron-LM's rule, token by token.
std::pair<std::int64_t, std::int64_t> cut_plainly(std::int64_t a, std::int64_t b, std::int64_t target) {
  while (a + b > target) --(a > b ? a : b);
  return {a, b};
}

void check_texts(const Sample& sample, const IndexedDataset& dataset, const SentenceSegment& segment) {
  const auto place = [](std::int32_t token) { return std::int64_t{token} - kFirstOrdinary; };
  const Document &earlier = sample.is_swapped ? sample.b : sample.a, &later = sample.is_swapped ? sample.a : sample.b;
  for (const Document* text : {&earlier, &later}) {
    for (std::size_t i = 1; i < text->size(); ++i) ASSERT_EQ((*text)[i], (*text)[i - 1] + 1);
  }
  const std::int64_t begin = dataset.sequence(segment.first).begin, end = dataset.sequence(segment.end - 1).end;
  ASSERT_GE(place(earlier.front()), begin);
  ASSERT_LT(place(later.back()), end);
  // The cut lies where a sentence begins, and leaves sides that truncation makes these.
  bool is_found = false;
  for (std::int64_t at = segment.first + 1; at < segment.end; ++at) {
    const std::int64_t cut = dataset.sequence(at).begin;
    std::int64_t a = cut - begin, b = end - cut;
    if (sample.is_swapped) std::swap(a, b);
    is_found = is_found || (place(earlier.back()) < cut && cut <= place(later.front()) &&
                            std::pair<std::int64_t, std::int64_t>(std::ssize(sample.a), std::ssize(sample.b)) ==
                                cut_plainly(a, b, segment.target));
  }
  ASSERT_TRUE(is_found) << "no end of a sentence lies between A and B, or they were cut wrongly";
}

TEST_F(PairsOfSentences, AreWhatTheRulesMakeOfEachSegment) {
  for (int round = 0; round < trials(300); ++round) {
    make_corpus();
    const auto all = samples();
    const SentenceSegments expected = segments();
    ASSERT_EQ(all->samples_per_epoch(), expected.count());
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const SampleBatch batch = read_batch(*all, {epoch * expected.count(), expected.count()});
      std::set<std::int64_t> read;
      for (std::int64_t i = 0; i < expected.count(); ++i) {
        const Sample sample(batch, i, seq_length_, tokens_);
        ASSERT_NO_FATAL_FAILURE(check_layout(sample, tokens_));
        ASSERT_NO_FATAL_FAILURE(check_masks(sample, tokens_));
        std::int64_t index = 0;  // of the segment that holds its first token
        while (dataset_->sequence(expected[index].end - 1).end <= sample.a.front() - kFirstOrdinary) ++index;
        ASSERT_NO_FATAL_FAILURE(check_texts(sample, *dataset_, expected[index]));
        ASSERT_TRUE(read.insert(index).second) << "a segment came twice in an epoch";
        ASSERT_TRUE(order_ == SampleOrder::kShuffled || index == i);
        ASSERT_EQ(batch.label_weights[static_cast<std::size_t>(i)], 1);
      }
    }
  }
}

TEST_F(PairsOfSentences, WeighWhatIsRead) {
  for (int round = 0; round < 100; ++round) {
    make_corpus();
    const auto all = samples();
    const SampleRange positions{below(500), below(50)};
    const SampleBatch batch = read_batch(*all, positions);
    const Samples::TotalWeights total = all->total_weights(positions);
    EXPECT_EQ(total.targets, std::accumulate(batch.weights.begin(), batch.weights.end(), 0.0));
    EXPECT_EQ(total.labels, static_cast<double>(positions.count));
  }
}

// As a resumed run, other ranks and other threads read them; and as two shards hold them.
TEST_F(PairsOfSentences, HowTheyAreReadChangesNothing) {
  const int threads = thread_count();
  for (int round = 0; round < 60; ++round) {
    make_corpus();
    const SampleRange positions{below(300), 1 + below(60)};
    set_thread_count(1);
    const SampleBatch whole = read_batch(*samples(), positions);
    set_thread_count(3);
    expect_same(read_batch(*samples(), positions), whole);
    const auto again = samples();
    std::vector<std::int64_t> places(static_cast<std::size_t>(positions.count));
    std::iota(places.begin(), places.end(), 0);
    std::ranges::shuffle(places, random_);
    SampleBatch pieces = again->make_batch(positions.count);
    for (const std::int64_t place : places) again->read({positions.first + place, 1}, pieces, place);
    expect_same(pieces, whole);
    SampleBatch shared = again->make_batch(positions.count);
    std::vector<std::thread> readers;
    for (std::int64_t reader = 0; reader < 4; ++reader) {
      readers.emplace_back([&, reader] {
        for (std::int64_t i = reader; i < positions.count; i += 4) again->read({positions.first + i, 1}, shared, i);
      });
    }
    for (std::thread& reader : readers) reader.join();
    expect_same(shared, whole);
  }
  set_thread_count(threads);
}

TEST_F(PairsOfSentences, ShardsAreReadAsOneFile) {
  for (int round = 0; round < 30; ++round) {
    const RandomSentences corpus(random_, 60, 12, 20);
    if (corpus.documents.empty()) continue;
    const auto all = std::span(corpus.documents);
    const auto first = static_cast<std::size_t>(below(std::ssize(all)));
    write_sentences(folder_ / "all", all, 1 << 30);
    write_sentences(folder_ / "a", all.first(first), 1 << 30);
    write_sentences(folder_ / "b", all.subspan(first), 1 << 30);
    const BertTokens tokens = random_tokens(random_, corpus.end, 0.3, 0);
    const auto samples_of = [&](const std::vector<std::filesystem::path>& prefixes) {
      auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(prefixes));
      CorpusPart part = split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front();
      return std::make_unique<BertSamples>(dataset, std::move(part), 20, SampleOrder::kShuffled, 3, tokens);
    };
    expect_same(read_batch(*samples_of({folder_ / "a", folder_ / "b"}), {0, 200}),
                read_batch(*samples_of({folder_ / "all"}), {0, 200}));
  }
}

TEST_F(PairsOfSentences, EveryEpochHasItsOwnOrderAndMasks) {
  const std::vector<std::vector<Document>> documents(300, std::vector<Document>(4, Document(10, 7)));
  RandomSentences corpus(random_, 0, 0, 0);
  std::int32_t next = kFirstOrdinary;
  corpus.documents = documents;
  for (auto& document : corpus.documents) {
    for (auto& sentence : document) std::iota(sentence.begin(), sentence.end(), std::exchange(next, next + 10));
  }
  write_sentences(folder_ / "corpus", corpus.documents, 1 << 30);
  dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
  tokens_ = random_tokens(random_, next, 0.3, 0);
  part_ = split_corpus(*dataset_, std::vector<double>{1}, kFileOrder).front();
  seq_length_ = 64;
  for (const SampleOrder order : {SampleOrder::kShuffled, SampleOrder::kSequential}) {
    order_ = order;
    const auto all = samples();
    const std::int64_t count = all->samples_per_epoch();
    const SampleBatch first = read_batch(*all, {0, count}), second = read_batch(*all, {count, count});
    std::int64_t moved = 0, alike = 0, masked_alike = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Sample a(first, i, seq_length_, tokens_), b(second, i, seq_length_, tokens_);
      moved += (a.a.front() - kFirstOrdinary) / 40 != (b.a.front() - kFirstOrdinary) / 40 ? 1 : 0;  // another document
      if (a.targets != b.targets) continue;
      ++alike;
      masked_alike += a.weights == b.weights ? 1 : 0;
    }
    EXPECT_EQ(moved > 0, order == SampleOrder::kShuffled);
    EXPECT_TRUE(order == SampleOrder::kShuffled || alike > 10);  // cut and swapped alike by chance
    EXPECT_LE(masked_alike, alike / 4);
  }
}

// Corpora of nothing, of single sentences, of sentences without tokens are refused, or read without end.
TEST_F(PairsOfSentences, ACorpusWithoutPairsIsReportedAndNeverHangs) {
  int told = 0, read = 0;
  for (int round = 0; round < 400; ++round) {
    const RandomSentences corpus(random_, 1 + below(6), below(6), below(4));
    write_sentences(folder_ / "corpus", corpus.documents, 1 << 30);
    dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
    tokens_ = random_tokens(random_, corpus.end + 1, 0.3, below(2) == 0 ? 1 : 0);
    part_ = split_corpus(*dataset_, std::vector<double>{1}, kFileOrder).front();
    seq_length_ = BertSamples::kShortestSequence + below(3);
    if (segments().count() > 0) {
      read_batch(*samples(), {0, 50});
      ++read;
      continue;
    }
    ++told;
    const std::string message = message_of<UserError>([&] { samples(); });
    EXPECT_THAT(message, AllOf(HasSubstr("has two sentences"), HasSubstr(counted(dataset_->documents(), "document")),
                               HasSubstr(counted(dataset_->sequences(), "sentence"))));
    const bool is_split = dataset_->sequences() > dataset_->documents();
    EXPECT_THAT(message, HasSubstr(is_split ? "a larger share in --split" : "--split-sentences"));
  }
  EXPECT_GT(told, 50);
  EXPECT_GT(read, 50);
}

TEST_F(PairsOfSentences, DocumentsLeftOutAreCounted) {
  const std::vector<std::vector<Document>> documents = {{{9}, {8, 7}}, {}, {{5}}, {{}, {6}, {}}, {{4}, {}, {5}, {6}}};
  write_sentences(folder_ / "corpus", documents, 10);
  dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
  tokens_ = random_tokens(random_, 10, 0, 0);
  part_ = split_corpus(*dataset_, std::vector<double>{1}, kFileOrder).front();
  seq_length_ = 16;
  const BertSamples::Counts counts = samples()->counts();
  EXPECT_EQ(counts.documents, 5);
  EXPECT_EQ(counts.documents_left_out, 3);
  EXPECT_EQ(counts.sentences, 5);
}

TEST_F(PairsOfSentences, ASequenceTooShortForAPairIsReported) {
  make_corpus();
  seq_length_ = 4;
  EXPECT_THAT(message_of<UserError>([&] { samples(); }), HasSubstr("--seq-length 4 is too short for a pair"));
}

TEST_F(PairsOfSentences, ATokenOutsideTheVocabularyIsReported) {
  write_sentences(folder_ / "corpus", std::vector<std::vector<Document>>{{{4}, {9}}}, 10);
  dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
  tokens_ = random_tokens(random_, 9, 0, 0);
  part_ = split_corpus(*dataset_, std::vector<double>{1}, kFileOrder).front();
  seq_length_ = 8;
  const auto all = samples();
  EXPECT_THAT(message_of<UserError>([&] { read_batch(*all, {0, 1}); }), HasSubstr("token id 9"));
}

TEST_F(PairsOfSentences, AreBlendedLikeAnySamples) {
  for (int round = 0; round < 30; ++round) {
    std::vector<std::unique_ptr<const Samples>> blended;
    std::vector<std::unique_ptr<const Samples>> alone;
    seq_length_ = 0;
    const std::vector<double> weights = {1.0 + static_cast<double>(below(5)), 1.0 + static_cast<double>(below(5))};
    for (int corpus = 0; corpus < 2; ++corpus) {
      const std::int64_t seq_length = seq_length_;
      make_corpus();
      if (corpus > 0) seq_length_ = seq_length;
      std::filesystem::rename(folder_ / "corpus.bin", folder_ / fmt::format("{}.bin", corpus));
      std::filesystem::rename(folder_ / "corpus.idx", folder_ / fmt::format("{}.idx", corpus));
      blended.push_back(samples());
      alone.push_back(samples());
    }
    const BlendedSamples blend(std::move(blended), weights);
    const SampleRange positions{below(100), 1 + below(40)};
    const SampleBatch batch = read_batch(blend, positions);
    SampleBatch expected = blend.make_batch(positions.count);
    for (std::int64_t i = 0; i < positions.count; ++i) {
      const BlendOrder::Entry entry = blend.order().entry(positions.first + i);
      alone[entry.corpus]->read({entry.sample, 1}, expected, i);
    }
    expect_same(batch, expected);
    const Samples::TotalWeights total = blend.total_weights(positions);
    EXPECT_EQ(total.targets, std::accumulate(batch.weights.begin(), batch.weights.end(), 0.0));
    EXPECT_EQ(total.labels, static_cast<double>(positions.count));
  }
}

}  // namespace
}  // namespace teratron::testing
