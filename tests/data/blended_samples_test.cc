// Blends of corpora whose tokens tell which corpus and entry they came from.
#include "data/samples/blended_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "data/dataset_fixture.h"
#include "data/samples/gpt_samples.h"

namespace teratron::testing {
namespace {

class BlendOfCorpora : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }

  // Corpora of up to 40 documents; a token is its entry, and the corpus' number in the upper bits.
  void make_corpora() {
    datasets_.clear();
    weights_.clear();
    seq_length_ = 1 + below(12);
    const std::int64_t corpora = 1 + below(5);
    for (std::int64_t corpus = 0; corpus < corpora; ++corpus) {
      const auto prefix = folder_ / fmt::format("corpus-{}", corpus);
      IndexedDatasetWriter writer(prefix, 1 << 30);
      Document document(static_cast<std::size_t>(seq_length_ + 1));
      std::int32_t next = static_cast<std::int32_t>(corpus) << kCorpusBits;
      for (std::int64_t left = 1 + below(40); left > 0; --left) {
        for (auto& token : document) token = next++;
        writer.add_document(document);
        document.resize(static_cast<std::size_t>(below(25)));
      }
      writer.commit();
      datasets_.push_back(std::make_shared<const IndexedDataset>(IndexedDataset::open(prefix)));
      weights_.push_back(static_cast<double>(1 + below(20)));
    }
    seed_ = random_();
    order_ = below(3) == 0 ? SampleOrder::kSequential : SampleOrder::kShuffled;
  }

  std::unique_ptr<const Samples> samples_of(std::size_t corpus) const {
    const auto& dataset = datasets_[corpus];
    return std::make_unique<GptSamples>(dataset, split_corpus(*dataset, std::vector<double>{1}, kFileOrder).front(),
                                        seq_length_, order_, seed_ + corpus, documents_);
  }

  BlendedSamples blend() const {
    std::vector<std::unique_ptr<const Samples>> corpora;
    for (std::size_t i = 0; i < datasets_.size(); ++i) corpora.push_back(samples_of(i));
    return BlendedSamples(std::move(corpora), weights_);
  }

  static Document read(const Samples& samples, SampleRange positions) {
    SampleBatch batch = samples.make_batch(positions.count);
    samples.read(positions, batch, 0);
    return batch.ids;
  }

  static constexpr int kCorpusBits = 20;
  const TemporaryFolder folder_;
  std::mt19937_64 random_{1};
  std::vector<std::shared_ptr<const IndexedDataset>> datasets_;
  std::vector<double> weights_;
  std::int64_t seq_length_ = 1;
  std::uint64_t seed_ = 0;
  SampleOrder order_ = SampleOrder::kShuffled;
  DocumentOptions documents_;
};

TEST_F(BlendOfCorpora, EachCorpusGoesThroughItsOwnSamplesInItsOwnOrder) {
  for (int round = 0; round < 60; ++round) {
    make_corpora();
    const BlendedSamples samples = blend();
    std::vector<std::int64_t> counts(datasets_.size());
    for (std::int64_t position = 0; position < 300; ++position) {
      const Document tokens = read(samples, {position, 1});
      const auto corpus = static_cast<std::size_t>(tokens.front() >> kCorpusBits);
      ASSERT_EQ(corpus, samples.order().entry(position).corpus);
      const std::int64_t sample = counts[corpus]++;
      ASSERT_EQ(tokens, read(*samples_of(corpus), {sample, 1})) << "position " << position;
      ASSERT_EQ(samples.source(position), samples.corpus(corpus).source(sample));
    }
  }
}

TEST_F(BlendOfCorpora, EveryChunkOfEachCorpusComesOnceInEachOfItsEpochs) {
  for (int round = 0; round < 40; ++round) {
    make_corpora();
    const BlendedSamples samples = blend();
    std::map<std::size_t, std::vector<Document>> read_of;
    for (std::int64_t position = 0; position < 600; ++position) {
      const Document tokens = read(samples, {position, 1});
      read_of[static_cast<std::size_t>(tokens.front() >> kCorpusBits)].push_back(tokens);
    }
    for (const auto& [corpus, chunks] : read_of) {
      const auto epoch = static_cast<std::size_t>(samples.corpus(corpus).samples_per_epoch());
      for (std::size_t begin = 0; begin + epoch <= chunks.size(); begin += epoch) {
        std::set<std::int32_t> tokens;
        for (std::size_t i = begin; i < begin + epoch; ++i) tokens.insert(chunks[i].begin(), chunks[i].end());
        ASSERT_EQ(tokens.size(), epoch * static_cast<std::size_t>(seq_length_)) << "a token came twice in an epoch";
      }
    }
  }
}

TEST_F(BlendOfCorpora, AnEpochEndsBeforeASampleComesAgain) {
  for (int round = 0; round < 60; ++round) {
    make_corpora();
    const BlendedSamples samples = blend();
    std::vector<std::int64_t> counts(datasets_.size());
    std::int64_t position = 0;  // of the first sample that is not its corpus' first time through
    for (;; ++position) {
      const std::size_t corpus = samples.order().entry(position).corpus;
      if (counts[corpus]++ == samples.corpus(corpus).samples_per_epoch()) break;
    }
    ASSERT_EQ(samples.samples_per_epoch(), position);
  }
}

// Any weights of targets, and any number of samples of a corpus in an update.
TEST_F(BlendOfCorpora, WeighsWhatItReads) {
  for (int round = 0; round < 60; ++round) {
    make_corpora();
    documents_ = {.eod_mask_loss = true, .end_token = static_cast<std::int32_t>(below(3))};
    const BlendedSamples samples = blend();
    const SampleRange positions{below(500), 1 + below(4)};
    SampleBatch batch = samples.make_batch(positions.count);
    samples.read(positions, batch, 0);
    const double read = std::accumulate(batch.weights.begin(), batch.weights.end(), 0.0);
    ASSERT_EQ(samples.total_weights(positions).targets, read);
  }
}

TEST_F(BlendOfCorpora, HowReadsAreCutChangesNothing) {
  for (int round = 0; round < 40; ++round) {
    make_corpora();
    const BlendedSamples samples = blend();
    const std::int64_t first = below(500), count = 1 + below(60);
    const Document whole = read(samples, {first, count});
    const BlendedSamples again = blend();  // as a resumed run makes it
    SampleBatch batch = again.make_batch(count);
    double targets = 0;
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t part = std::min(count - done, 1 + below(9));
      again.read({first + done, part}, batch, done);
      targets += again.total_weights({first + done, part}).targets;
      done += part;
    }
    ASSERT_EQ(batch.ids, whole);
    ASSERT_EQ(targets, static_cast<double>(count * seq_length_));
    ASSERT_EQ(samples.total_weights({first, count}).targets, targets);
  }
}

}  // namespace
}  // namespace teratron::testing
