// The indexed format against files written by an independent script (tests/golden/make_indexed_golden.py), both ways,
// and against files damaged in every way a user may meet.
#include "data/indexed/indexed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/indexed/indexed_dataset_writer.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/indexed" / name;
}

// The script's two formulas.
std::int64_t golden_length(std::int64_t sequence) { return (sequence * sequence * 7 + 3) % 11; }
std::int32_t golden_token(std::int64_t position, std::int64_t vocab_size) {
  return static_cast<std::int32_t>((position * 7919 + 13) % vocab_size);
}

struct GoldenCase {
  TokenType type;
  std::int64_t vocab_size;
};

class GoldenFiles : public ::testing::TestWithParam<GoldenCase> {};

INSTANTIATE_TEST_SUITE_P(AllTypes, GoldenFiles,
                         ::testing::Values(GoldenCase{TokenType::kU8, 251}, GoldenCase{TokenType::kI8, 127},
                                           GoldenCase{TokenType::kI16, 30011}, GoldenCase{TokenType::kI32, 100003},
                                           GoldenCase{TokenType::kI64, 100003}, GoldenCase{TokenType::kU16, 50257}),
                         [](const auto& one) { return std::string(name_of(one.param.type)); });

TEST_P(GoldenFiles, AreReadAsTheScriptWroteThem) {
  const auto [type, vocab_size] = GetParam();
  for (const bool sentences : {false, true}) {
    const auto dataset =
        IndexedDataset::open(golden(fmt::format("{}_{}", sentences ? "sentences" : "documents", name_of(type))));
    EXPECT_EQ(dataset.shards().front().token_type(), type);
    ASSERT_EQ(dataset.documents(), sentences ? 5 : 12);
    std::int64_t sequence = 0, position = 0;
    for (std::int64_t document = 0; document < dataset.documents(); ++document) {
      EXPECT_EQ(dataset.first_sequence(document), sequence);
      const std::int64_t begin = position;
      for (std::int64_t i = 0; i < (sentences ? document % 4 : 1); ++i, ++sequence) {
        EXPECT_EQ(dataset.sequence(sequence), (TokenRange{position, position + golden_length(sequence)}));
        EXPECT_EQ(dataset.sequence_size(sequence), golden_length(sequence));
        position += golden_length(sequence);
      }
      EXPECT_EQ(dataset.document(document), (TokenRange{begin, position}));
    }
    EXPECT_EQ(dataset.sequences(), sequence);
    ASSERT_EQ(dataset.tokens(), position);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(position));
    dataset.read(0, tokens);
    for (std::int64_t i = 0; i < position; ++i) {
      EXPECT_EQ(tokens[static_cast<std::size_t>(i)], golden_token(i, vocab_size));
    }
    dataset.check_vocabulary(vocab_size);
  }
}

// The writer knows two types; readers of other programs then read its files as they read the script's.
TEST(IndexedDatasetWriter, WritesTheScriptsFilesByteForByte) {
  const TemporaryFolder folder;
  for (const GoldenCase c : {GoldenCase{TokenType::kU16, 50257}, GoldenCase{TokenType::kI32, 100003}}) {
    for (const bool sentences : {false, true}) {
      const std::string name = fmt::format("{}_{}", sentences ? "sentences" : "documents", name_of(c.type));
      IndexedDatasetWriter writer(folder / name, c.vocab_size);
      std::int64_t sequence = 0, position = 0;
      for (std::int64_t document = 0; document < (sentences ? 5 : 12); ++document) {
        for (std::int64_t i = 0; i < (sentences ? document % 4 : 1); ++i) {
          Document tokens(static_cast<std::size_t>(golden_length(sequence++)));
          for (auto& token : tokens) token = golden_token(position++, c.vocab_size);
          writer.add_sequence(tokens);
        }
        writer.end_document();
      }
      writer.commit();
      EXPECT_EQ(read_file(bin_path(folder / name)), read_file(bin_path(golden(name))));
      EXPECT_EQ(read_file(idx_path(folder / name)), read_file(idx_path(golden(name))));
    }
  }
}

TEST(IndexedDatasetWriter, TakesTwoBytesATokenBelow65500Ids) {
  EXPECT_EQ(token_type_for(65499), TokenType::kU16);
  EXPECT_EQ(token_type_for(65500), TokenType::kI32);
}

TEST(IndexedDataset, GivesRandomDocumentsBack) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t vocab_size = round % 2 == 0 ? 300 : 70000;
    std::vector<Document> documents(std::uniform_int_distribution<std::size_t>(0, 30)(random));
    for (auto& document : documents) {
      document.resize(std::uniform_int_distribution<std::size_t>(0, 40)(random));
      for (auto& token : document) {
        token = static_cast<std::int32_t>(std::uniform_int_distribution<std::int64_t>(0, vocab_size - 1)(random));
      }
    }
    write_dataset(folder / "random", documents, vocab_size);
    const auto dataset = IndexedDataset::open(folder / "random");
    ASSERT_EQ(dataset.documents(), static_cast<std::int64_t>(documents.size()));
    for (std::int64_t i = 0; i < dataset.documents(); ++i) {
      const TokenRange range = dataset.document(i);
      Document tokens(static_cast<std::size_t>(range.size()));
      dataset.read(range.begin, tokens);
      EXPECT_EQ(tokens, documents[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(IndexedDatasetWriter, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    IndexedDatasetWriter writer(folder / "corpus", 100);
    writer.add_document(Document{1, 2, 3});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(IndexedDatasetWriter, KeepsTheOldDatasetUntilTheNewOneIsWhole) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {{1, 2, 3}}, 100);
  {
    IndexedDatasetWriter writer(folder / "corpus", 100);
    for (int i = 0; i < 300000; ++i) writer.add_document(Document{4, 5, 6, 7});  // beyond every buffer
    EXPECT_EQ(IndexedDataset::open(folder / "corpus").tokens(), 3);
  }
  EXPECT_EQ(IndexedDataset::open(folder / "corpus").tokens(), 3);
  write_dataset(folder / "corpus", {{4}, {5, 6}, {7, 8}}, 100);
  EXPECT_EQ(IndexedDataset::open(folder / "corpus").tokens(), 5);
}

// A limit on the size of files stands for a full disk: writes beyond it fail in the same way.
TEST(IndexedDatasetWriter, AFullDiskIsAnErrorAndTheOldDatasetStays) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {{1, 2, 3}}, 100);
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  // 6000 documents of 128 bytes in .bin and 20 in .idx: both files are too long, then the .bin alone.
  const Document document(64, 7);
  for (const rlim_t limit : {rlim_t{100000}, rlim_t{300000}}) {
    const std::string message = message_of<EnvironmentError>([&] {
      const rlimit small{limit, before.rlim_max};
      IndexedDatasetWriter writer(folder / "corpus", 100);
      for (int i = 0; i < 6000; ++i) writer.add_document(document);
      setrlimit(RLIMIT_FSIZE, &small);
      writer.commit();
    });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_THAT(message, AllOf(HasSubstr("cannot write"), HasSubstr("corpus.")));
    EXPECT_EQ(IndexedDataset::open(folder / "corpus").tokens(), 3);
  }
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_FALSE(std::filesystem::exists(folder / "corpus.idx.partial"));
}

TEST(IndexedDatasetWriter, AnOldIndexThatCannotBeReplacedKeepsItsBin) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "corpus.bin", "old");
  make_folders(folder / "corpus.idx/in the way");
  EXPECT_THAT(message_of<EnvironmentError>([&] {
                write_dataset(folder / "corpus", {{1, 2, 3}}, 100);
              }),
              HasSubstr("cannot replace '" + (folder / "corpus.idx").string()));
  EXPECT_EQ(read_file(folder / "corpus.bin"), "old");
}

TEST(IndexedDatasetWriter, AMissingFolderIsAnError) {
  const TemporaryFolder folder;
  const auto message = message_of<EnvironmentError>([&] { IndexedDatasetWriter writer(folder / "no/corpus", 100); });
  EXPECT_THAT(message, AllOf(HasSubstr("no/corpus.bin"), HasSubstr("make it first")));
}

TEST(IndexedDatasetWriter, APrefixWithoutANameIsRefused) {
  const TemporaryFolder folder;
  for (const std::string& prefix :
       {std::string(), folder.path().string() + "/", (folder / ".").string(), (folder / "..").string()}) {
    EXPECT_THAT(message_of<UserError>([&] { IndexedDatasetWriter writer(prefix, 100); }),
                HasSubstr("'" + prefix + "' is no name for a corpus"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(IndexedDatasetWriter, ATokenOutsideTheVocabularyIsABug) {
  const TemporaryFolder folder;
  IndexedDatasetWriter writer(folder / "corpus", 100);
  EXPECT_THROW(writer.add_document(Document{99, 100}), InternalError);
  EXPECT_THROW(writer.add_document(Document{-1}), InternalError);
}

TEST(IndexedDataset, NamesTheFirstTokenBeyondTheVocabulary) {
  const TemporaryFolder folder;
  write_dataset(folder / "corpus", {{5, 9}, {}, {1, 40, 2, 50}, {60}}, 100);
  const auto dataset = IndexedDataset::open(folder / "corpus");
  dataset.check_vocabulary(61);
  EXPECT_THAT(message_of<UserError>([&] { dataset.check_vocabulary(40); }),
              AllOf(HasSubstr("corpus.bin"), HasSubstr("token id 40 at position 3 (document 2)"),
                    HasSubstr("40 tokens, 0 to 39")));
  EXPECT_THAT(message_of<UserError>([&] { dataset.check_vocabulary(60); }),
              HasSubstr("token id 60 at position 6 (document 3)"));
}

TEST(IndexedDataset, NamesTheFirstOfManyTokensBeyondTheVocabularyInALargeCorpus) {
  const TemporaryFolder folder;
  std::vector<Document> documents(5, Document(1 << 20, 1));
  documents[3][77] = 30;
  documents[4][0] = 31;
  write_dataset(folder / "corpus", documents, 100);
  EXPECT_THAT(message_of<UserError>([&] { IndexedDataset::open(folder / "corpus").check_vocabulary(30); }),
              HasSubstr(fmt::format("token id 30 at position {} (document 3)", 3 * (1 << 20) + 77)));
}

// One field of a good dataset overwritten, or one file cut or lengthened.
struct Damage {
  std::string what, expected;
  std::function<void(std::string& bin, std::string& idx)> apply;
};

template <class T>
void put(std::string& file, std::size_t offset, T value) {
  ASSERT_LE(offset + sizeof(T), file.size());
  std::memcpy(file.data() + offset, &value, sizeof(T));
}

// The dataset has documents of 3, 0 and 2 tokens, each a sequence; lengths at 34, offsets at 46, documents at 70.
std::vector<Damage> damages() {
  return {
      {"wrong magic", "does not begin with \"MMIDIDX\"", [](auto&, auto& idx) { idx[0] = 'X'; }},
      {"an empty index", "does not begin with \"MMIDIDX\"", [](auto&, auto& idx) { idx.clear(); }},
      {"a cut header", "ends within its header", [](auto&, auto& idx) { idx.resize(20); }},
      {"another version", "version 2", [](auto&, auto& idx) { put<std::uint64_t>(idx, 9, 2); }},
      {"floating point", "floating point", [](auto&, auto& idx) { put<std::uint8_t>(idx, 17, 7); }},
      {"no such type", "type code 9", [](auto&, auto& idx) { put<std::uint8_t>(idx, 17, 9); }},
      {"a cut index", "does not fit the 3 sequences", [](auto&, auto& idx) { idx.pop_back(); }},
      {"a longer index", "does not fit the 3 sequences", [](auto&, auto& idx) { idx.push_back('\0'); }},
      {"too many sequences", "does not fit", [](auto&, auto& idx) { put<std::uint64_t>(idx, 18, 1ULL << 62); }},
      {"too many documents", "does not fit", [](auto&, auto& idx) { put<std::uint64_t>(idx, 26, ~0ULL); }},
      {"no document entries", "no document entries",
       [](auto&, auto& idx) {
         put<std::uint64_t>(idx, 26, 0);
         idx.resize(70);
       }},
      {"a negative length", "sequence 0 has the length -3", [](auto&, auto& idx) { put<std::int32_t>(idx, 34, -3); }},
      {"a longer length", "sequence 1 is said to begin at byte 6 of the .bin, but the ones before it end at byte 8",
       [](auto&, auto& idx) { put<std::int32_t>(idx, 34, 4); }},
      {"a longer last length", "'BIN' is cut short: it has 10 bytes, and sequence 2 of 3 needs bytes 6 to 14",
       [](auto&, auto& idx) { put<std::int32_t>(idx, 42, 4); }},
      {"a shorter last length", "do not belong together", [](auto&, auto& idx) { put<std::int32_t>(idx, 42, 1); }},
      {"an offset elsewhere", "sequence 2", [](auto&, auto& idx) { put<std::int64_t>(idx, 62, 1LL << 40); }},
      {"a negative offset", "sequence 0 is said to begin at byte -2",
       [](auto&, auto& idx) { put<std::int64_t>(idx, 46, -2); }},
      {"documents out of order", "document 2", [](auto&, auto& idx) { put<std::int64_t>(idx, 78, 3); }},
      {"a document beyond the end", "document 3", [](auto&, auto& idx) { put<std::int64_t>(idx, 94, 4); }},
      {"documents that begin late", "its documents cover sequences 1 to 3 of 0 to 3",
       [](auto&, auto& idx) { put<std::int64_t>(idx, 70, 1); }},
      {"documents that end early", "its documents cover sequences 0 to 2",
       [](auto&, auto& idx) { put<std::int64_t>(idx, 94, 2); }},
      {"a cut .bin", "'BIN' is cut short: it has 9 bytes", [](auto& bin, auto&) { bin.pop_back(); }},
      {"an empty .bin", "'BIN' is cut short: it has 0 bytes", [](auto& bin, auto&) { bin.clear(); }},
      {"a longer .bin", "do not belong together", [](auto& bin, auto&) { bin += "xx"; }},
  };
}

TEST(IndexedDataset, EveryDamageIsReportedByNameAndFile) {
  const TemporaryFolder folder;
  write_dataset(folder / "good", {{1, 2, 3}, {}, {4, 5}}, 100);
  for (const Damage& damage : damages()) {
    std::string bin = read_file(folder / "good.bin"), idx = read_file(folder / "good.idx");
    damage.apply(bin, idx);
    write_file_atomically(folder / "bad.bin", bin);
    write_file_atomically(folder / "bad.idx", idx);
    const std::string message = message_of<UserError>([&] { IndexedDataset::open(folder / "bad"); });
    std::string expected = damage.expected;
    if (const auto at = expected.find("BIN"); at != std::string::npos) {
      expected.replace(at, 3, (folder / "bad.bin").string());
    }
    EXPECT_THAT(message, AllOf(HasSubstr(expected), HasSubstr((folder / "bad.").string()))) << damage.what;
  }
}

TEST(IndexedDataset, AMissingFileIsReportedWithWhatToGive) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { IndexedDataset::open(folder / "none"); }),
              AllOf(HasSubstr("none.idx' is missing"), HasSubstr("without '.bin' or '.idx'")));
  write_dataset(folder / "half", {{1}}, 100);
  std::filesystem::remove(folder / "half.bin");
  EXPECT_THAT(message_of<UserError>([&] { IndexedDataset::open(folder / "half"); }), HasSubstr("half.bin' is missing"));
}

TEST(IndexedDataset, AStoredValueThatIsNoIdIsReportedWhenRead) {
  const TemporaryFolder folder;
  std::filesystem::copy(golden("documents_i64.idx"), folder / "corpus.idx");
  std::string bin = read_file(golden("documents_i64.bin"));
  put<std::int64_t>(bin, 16, std::int64_t{1} << 31);
  put<std::int64_t>(bin, 24, -5);
  write_file_atomically(folder / "corpus.bin", bin);
  const auto dataset = IndexedDataset::open(folder / "corpus");
  Document tokens(2);
  dataset.read(0, tokens);
  EXPECT_THAT(message_of<UserError>([&] { dataset.read(1, tokens); }), HasSubstr("holds 2147483648 at token 2"));
  EXPECT_THAT(message_of<UserError>([&] { dataset.read(3, tokens); }), HasSubstr("holds -5 at token 3"));
  EXPECT_THAT(message_of<UserError>([&] { dataset.check_vocabulary(1LL << 40); }),
              HasSubstr("holds 2147483648 at token 2 (document "));
}

}  // namespace
}  // namespace teratron::testing
