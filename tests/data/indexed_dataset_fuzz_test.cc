// Damaged datasets: whatever stands in the files, they are refused with a UserError or read without harm. Under the
// address sanitizer, a read beyond a file is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/indexed/dataset_info.h"
#include "data/samples/gpt_samples.h"
#include "data/split/corpus_split.h"

namespace teratron::testing {
namespace {

// Everything that a run does with a dataset. True where the dataset was accepted.
bool use_dataset(const std::filesystem::path& prefix) {
  try {
    const auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(prefix));
    dataset_info(std::array{prefix});
    for (const SplitRule& rule : {kFileOrder, SplitRule{.seed = 1}}) {
      const auto parts = split_corpus(*dataset, std::vector<double>{29, 1}, rule);
      const GptSamples samples(dataset, parts[0], 4, SampleOrder::kShuffled, 1);
      std::vector<std::int32_t> tokens(5);
      for (std::int64_t i = 0; i < 2 * samples.samples_per_epoch(); ++i) samples.sample(i, tokens);
    }
    dataset->check_vocabulary(100);
    return true;
  } catch (const UserError& error) {
    EXPECT_GT(std::string(error.what()).size(), 20U);
    return false;
  }
}

class DamagedDataset : public ::testing::Test {
 protected:
  DamagedDataset() {
    std::vector<Document> documents;
    for (std::int32_t i = 0; i < 9; ++i) documents.emplace_back(static_cast<std::size_t>(i * 5 % 7), i);
    write_dataset(folder_ / "good", documents, 100);
    bin_ = read_file(folder_ / "good.bin");
    idx_ = read_file(folder_ / "good.idx");
  }
  bool use(const std::string& bin, const std::string& idx) {
    write(folder_ / "bad.bin", bin);
    write(folder_ / "bad.idx", idx);
    return use_dataset(folder_ / "bad");
  }
  // Without the fsync of write_file_atomically, and to a new file each time: file systems flush one that is
  // overwritten.
  static void write(const std::filesystem::path& path, const std::string& content) {
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << content;
  }

  TemporaryFolder folder_;
  std::string bin_, idx_;
  std::mt19937_64 random_{2};
};

TEST_F(DamagedDataset, TheGoodOneIsAccepted) { EXPECT_TRUE(use(bin_, idx_)); }

TEST_F(DamagedDataset, EveryCutIsRefused) {
  for (std::size_t size = 0; size < idx_.size(); ++size) EXPECT_FALSE(use(bin_, idx_.substr(0, size))) << size;
  for (std::size_t size = 0; size < bin_.size(); ++size) EXPECT_FALSE(use(bin_.substr(0, size), idx_)) << size;
}

TEST_F(DamagedDataset, EveryFlippedBitOfTheIndexIsRefusedOrHarmless) {
  for (std::size_t bit = 0; bit < idx_.size() * 8; ++bit) {
    std::string idx = idx_;
    idx[bit / 8] = static_cast<char>(idx[bit / 8] ^ (1 << (bit % 8)));
    use(bin_, idx);
  }
}

TEST_F(DamagedDataset, RandomDamageIsRefusedOrHarmless) {
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  };
  const std::array<std::int64_t, 8> values = {-1, 0, 1, 4, 255, 1LL << 31, INT64_MAX, INT64_MIN};
  for (int round = 0; round < 1500; ++round) {
    std::string bin = bin_, idx = idx_;
    for (std::size_t change = 0, changes = 1 + below(4); change < changes; ++change) {
      std::string& file = below(4) == 0 ? bin : idx;
      const std::int64_t value = below(2) == 0 ? values[below(values.size())] : static_cast<std::int64_t>(random_());
      const std::size_t at = below(file.size()), size = std::min(std::size_t{1} << below(4), file.size() - at);
      std::memcpy(file.data() + at, &value, size);
    }
    if (below(4) == 0) idx.resize(below(idx.size() + 30));
    if (below(4) == 0) bin.resize(below(bin.size() + 30));
    use(bin, idx);
  }
}

}  // namespace
}  // namespace teratron::testing
