#include "data/indexed/dataset_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

TEST(DatasetInfo, SaysSizesAndTheLargestToken) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {{1, 2, 3}, {}, {80, 4}, {5, 6, 7, 8, 9}}, 100);
  const DatasetInfo info = dataset_info(std::array{folder / "corpus"});
  EXPECT_EQ(info.token_types, std::vector{TokenType::kU16});
  EXPECT_EQ(info.documents, 4);
  EXPECT_EQ(info.sequences, 4);
  EXPECT_EQ(info.tokens, 10);
  EXPECT_EQ(info.bin_bytes, 20);
  EXPECT_EQ(info.idx_bytes, 34 + 4 * 12 + 5 * 8);
  EXPECT_EQ(info.shortest_document, 0);
  EXPECT_EQ(info.median_document, 3);  // of an even number, the upper one
  EXPECT_EQ(info.longest_document, 5);
  EXPECT_EQ(info.empty_documents, 1);
  EXPECT_EQ(info.largest_token, 80);
}

TEST(DatasetInfo, CountsDocumentsThatMakePairs) {
  const TemporaryFolder folder;
  IndexedDatasetWriter writer(folder / "corpus", 100);
  const std::vector<std::vector<Document>> documents = {{{1}, {2, 3}}, {{4}}, {{}, {5}, {}}, {}, {{6}, {}, {7}, {8}}};
  for (const auto& document : documents) {
    for (const Document& sentence : document) writer.add_sequence(sentence);
    writer.end_document();
  }
  writer.commit(identity_of(byte_tokenizer(), "tok"), SequenceUnit::kSentence);
  const DatasetInfo info = dataset_info(std::array{folder / "corpus"});
  EXPECT_EQ(info.documents, 5);
  EXPECT_EQ(info.sequences, 10);
  EXPECT_EQ(info.documents_of_pairs, 2);
  EXPECT_TRUE(info.has_sentences());
}

TEST(DatasetInfo, FindsTheLargestTokenOfALargeCorpus) {
  const TemporaryFolder folder;
  Document document(1'000'000, 7);
  document[999'999] = 70000;
  write_dataset(folder / "corpus", {document}, 100000);
  std::mutex mutex;
  double most = 0;
  const auto progress = [&](double share) {
    const std::lock_guard lock(mutex);
    most = std::max(most, share);
  };
  EXPECT_EQ(dataset_info(std::array{folder / "corpus"}, progress).largest_token, 70000);
  EXPECT_EQ(most, 1.0);
}

TEST(DatasetInfo, AnEmptyDatasetHasZeros) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {}, 100);
  const DatasetInfo info = dataset_info(std::array{folder / "corpus"});
  EXPECT_EQ(info.tokens, 0);
  EXPECT_EQ(info.largest_token, -1);
  EXPECT_EQ(info.longest_document, 0);
}

TEST(DatasetInfo, ShardsAreOneCorpus) {
  const TemporaryFolder folder;
  write_dataset(folder / "a", {{1, 2, 3}, {}}, 100);
  write_dataset(folder / "b", {{80, 4}, {5, 6, 7, 8, 9}}, 100000);
  const DatasetInfo info = dataset_info(std::array{folder / "a", folder / "b"});
  EXPECT_EQ(info.shards, 2);
  EXPECT_EQ(info.token_types, (std::vector{TokenType::kU16, TokenType::kI32}));
  EXPECT_EQ(info.documents, 4);
  EXPECT_EQ(info.tokens, 10);
  EXPECT_EQ(info.bin_bytes, 3 * 2 + 7 * 4);
  EXPECT_EQ(info.idx_bytes, 2 * (34 + 2 * 12 + 3 * 8));
  EXPECT_EQ(info.longest_document, 5);
  EXPECT_EQ(info.empty_documents, 1);
  EXPECT_EQ(info.largest_token, 80);
}

}  // namespace
}  // namespace teratron::testing
