// A corpus in several shards is the corpus that one file with all their documents would be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/samples/gpt_samples.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Shards : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }

  // Documents of one or two sequences, some of them empty, in one file and in up to seven, of which some may be empty
  // and some store tokens in four bytes.
  void write_random_corpus() {
    IndexedDatasetWriter whole(folder_ / "whole", 1 << 20);
    prefixes_.clear();
    std::int32_t next = 0;
    const std::int64_t shards = 1 + below(7);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      prefixes_.push_back(folder_ / fmt::format("shard-{}", shard));
      IndexedDatasetWriter writer(prefixes_.back(), below(2) == 0 ? 60000 : 1 << 20);
      for (std::int64_t document = below(1 + below(60)); document > 0; --document) {
        Document tokens(static_cast<std::size_t>(below(25)));
        for (auto& token : tokens) token = next++;
        writer.add_document(tokens);
        whole.add_document(tokens);
      }
      writer.commit();
    }
    whole.commit();
  }

  std::shared_ptr<const IndexedDataset> whole() const {
    return std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "whole"));
  }
  std::shared_ptr<const IndexedDataset> in_shards() const {
    return std::make_shared<const IndexedDataset>(IndexedDataset::open(prefixes_));
  }

  const TemporaryFolder folder_;
  std::vector<std::filesystem::path> prefixes_;
  std::mt19937_64 random_{1};
};

TEST_F(Shards, HaveTheDocumentsAndTokensOfTheWhole) {
  for (int round = 0; round < 40; ++round) {
    write_random_corpus();
    const auto expected = whole(), actual = in_shards();
    ASSERT_EQ(actual->tokens(), expected->tokens());
    ASSERT_EQ(actual->documents(), expected->documents());
    ASSERT_EQ(actual->sequences(), expected->sequences());
    for (std::int64_t i = 0; i < expected->documents(); ++i) ASSERT_EQ(actual->document(i), expected->document(i));
    for (std::int64_t i = 0; i < expected->sequences(); ++i) ASSERT_EQ(actual->sequence(i), expected->sequence(i));
    const std::int64_t begin = below(expected->tokens() + 1), count = below(expected->tokens() - begin + 1);
    Document tokens(static_cast<std::size_t>(count));
    actual->read(begin, tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) ASSERT_EQ(tokens[i], begin + static_cast<std::int64_t>(i));
  }
}

TEST_F(Shards, GiveTheSamplesOfTheWholeInItsOrder) {
  for (int round = 0; round < 40; ++round) {
    write_random_corpus();
    const SplitRule rule = below(2) == 0 ? kFileOrder : SplitRule{.seed = random_()};
    const std::vector<double> weights = {5, 2, 1};
    const auto expected = whole(), actual = in_shards();
    const auto parts = split_corpus(*actual, weights, rule), whole_parts = split_corpus(*expected, weights, rule);
    const auto seed = random_();
    const std::int64_t seq_length = 1 + below(15);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (whole_parts[part].tokens() <= seq_length) continue;
      for (const SampleOrder order : {SampleOrder::kShuffled, SampleOrder::kSequential}) {
        const GptSamples a(actual, parts[part], seq_length, order, seed);
        const GptSamples b(expected, whole_parts[part], seq_length, order, seed);
        ASSERT_EQ(a.samples_per_epoch(), b.samples_per_epoch());
        Document one(static_cast<std::size_t>(seq_length + 1)), other = one;
        for (std::int64_t position = 0; position < 2 * a.samples_per_epoch() + 1; ++position) {
          a.sample(position, one);
          b.sample(position, other);
          ASSERT_EQ(one, other) << "position " << position;
        }
      }
    }
  }
}

TEST_F(Shards, AFaultNamesItsShard) {
  write_dataset(folder_ / "a", {{1, 2}, {3}}, 100);
  write_dataset(folder_ / "b", {{4}, {5, 70}}, 100);
  prefixes_ = {folder_ / "a", folder_ / "b"};
  const auto dataset = in_shards();
  dataset->check_vocabulary(71);
  EXPECT_THAT(message_of<UserError>([&] { dataset->check_vocabulary(70); }),
              AllOf(HasSubstr((folder_ / "b.bin").string()), HasSubstr("token id 70 at position 2 (document 1)")));
  EXPECT_EQ(dataset->name(), fmt::format("'{}' and 1 more shard", (folder_ / "a").string()));
  prefixes_.push_back(folder_ / "c");
  EXPECT_THAT(message_of<UserError>([&] { in_shards(); }), HasSubstr("no dataset at '" + (folder_ / "c").string()));
}

}  // namespace
}  // namespace teratron::testing
