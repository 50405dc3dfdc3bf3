// Merging and splitting tokenised corpora: what comes out is what tokenising the same documents would have written.
#include "data/corpus_copy.h"

#include <gmock/gmock.h>

#include <cstring>

#include "base/error.h"
#include "base/philox.h"
#include "data/dataset_fixture.h"
#include "data/text/tokenize.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CorpusCopy : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Each line is a document of some sentences.
  std::string random_lines(std::uint64_t documents) {
    std::string lines;
    for (; documents > 0; --documents) {
      std::string text;
      for (std::uint64_t left = 1 + random_.below(4); left > 0; --left) {
        text += "A" + std::string(random_.below(40), 'b') + ". ";
      }
      lines += "{\"text\": \"" + text + "\"}\n";
    }
    return lines;
  }
  void tokenize(const std::string& name, const std::string& lines, bool split_sentences,
                const Tokenizer& tokenizer = byte_tokenizer()) const {
    write_file_atomically(path(name + ".jsonl"), lines);
    const std::vector<fs::path> files = {path(name + ".jsonl")};
    tokenize_files(
        tokenizer, files, path(name),
        {.tokenizer_name = "bytes", .split = split_sentences ? SentenceSplit::kPunctuation : SentenceSplit::kNone});
  }
  void expect_same_files(const std::string& a, const std::string& b) const {
    for (const std::string ending : {".bin", ".idx", ".teratron.json"}) {
      EXPECT_EQ(read_file(path(a + ending)), read_file(path(b + ending))) << a << ending;
    }
  }
  std::vector<CopiedCorpus> copy(const std::vector<std::string>& sources, const std::vector<std::string>& outs,
                                 const std::vector<std::uint8_t>& parts = {}) const {
    std::vector<std::string> words;
    for (const std::string& source : sources) words.push_back(path(source));
    std::vector<fs::path> paths;
    for (const std::string& out : outs) paths.emplace_back(path(out));
    return copy_documents(open_copy_source(words), paths, parts);
  }
  std::string refused(const std::vector<std::string>& sources, const std::vector<std::string>& outs,
                      const std::vector<std::uint8_t>& parts = {}) const {
    const auto before = folder_.entries();
    const std::string message = message_of<UserError>([&] { copy(sources, outs, parts); });
    EXPECT_EQ(folder_.entries(), before) << message;
    return message;
  }

  TemporaryFolder folder_;
  RandomSequence random_{RandomStream{.seed = 21}};
};

TEST_F(CorpusCopy, MergingIsTokenisingAllOfTheText) {
  for (int trial = 0; trial < 12; ++trial) {
    const bool split_sentences = trial % 2 == 1;
    std::string all;
    std::vector<std::string> shards;
    for (std::uint64_t shard = 0, count = 1 + random_.below(4); shard < count; ++shard) {
      const std::string lines = random_lines(1 + random_.below(20));
      shards.push_back(fmt::format("shard-{}", shard));
      tokenize(shards.back(), lines, split_sentences);
      all += lines;
    }
    tokenize("all", all, split_sentences);
    const CopiedCorpus copied = copy(shards, {"merged"}).front();
    expect_same_files("merged", "all");
    const auto whole = IndexedDataset::open(path("all"));
    EXPECT_EQ(copied.documents, whole.documents());
    EXPECT_EQ(copied.sequences, whole.sequences());
    EXPECT_EQ(copied.tokens, whole.tokens());
  }
}

TEST_F(CorpusCopy, SplittingIsTokenisingTheDocumentsOfEachPart) {
  for (int trial = 0; trial < 12; ++trial) {
    const bool split_sentences = trial % 2 == 1;
    std::vector<std::string> of_parts(3), shards = {"a", "b"};
    std::vector<std::uint8_t> parts;
    for (const std::string& shard : shards) {
      std::string lines;
      for (std::uint64_t left = 3 + random_.below(20); left > 0; --left) {
        const std::string line = random_lines(1);
        lines += line;
        // Every part has a document; of the fourth there is no corpus.
        parts.push_back(static_cast<std::uint8_t>(parts.size() < 3 ? parts.size() : random_.below(trial < 6 ? 3 : 4)));
        if (parts.back() < 3) of_parts[parts.back()] += line;
      }
      tokenize(shard, lines, split_sentences);
    }
    copy(shards, {"x", "y", "z"}, parts);
    for (std::size_t i = 0; i < 3; ++i) {
      tokenize("expected", of_parts[i], split_sentences);
      expect_same_files(std::vector{"x", "y", "z"}[i], "expected");
    }
  }
}

// Another writer of the format, one value after another, for corpora of every token type, with empty documents and
// empty sequences.
std::string bytes_of(std::int64_t value, std::int64_t size) {
  return std::string(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(size));
}

TEST_F(CorpusCopy, KeepsEveryTokenType) {
  const std::string golden = std::string(TERATRON_SOURCE_DIR) + "/tests/golden/indexed/";
  for (const TokenType type :
       {TokenType::kU8, TokenType::kI8, TokenType::kI16, TokenType::kI32, TokenType::kI64, TokenType::kU16}) {
    const std::vector<std::string> words = {golden + "sentences_" + std::string(name_of(type)),
                                            golden + "documents_" + std::string(name_of(type))};
    const auto both = IndexedDataset::open(std::vector<fs::path>(words.begin(), words.end()));
    std::string bin, lengths, offsets, documents;
    for (std::int64_t sequence = 0; sequence < both.sequences(); ++sequence) {
      const TokenRange range = both.sequence(sequence);
      lengths += bytes_of(range.size(), 4);
      offsets += bytes_of(std::ssize(bin), 8);
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(range.size()));
      both.read(range.begin, tokens);
      for (const std::int32_t token : tokens) bin += bytes_of(token, size_of(type));
    }
    for (std::int64_t i = 0; i <= both.documents(); ++i) documents += bytes_of(both.first_sequence(i), 8);
    const std::string idx = "MMIDIDX" + std::string(2, '\0') + bytes_of(1, 8) + bytes_of(static_cast<int>(type), 1) +
                            bytes_of(both.sequences(), 8) + bytes_of(both.documents() + 1, 8) + lengths + offsets +
                            documents;
    copy_documents(open_copy_source(words), std::vector<fs::path>{path("merged")}, {});
    EXPECT_EQ(read_file(path("merged.bin")), bin) << name_of(type);
    EXPECT_EQ(read_file(path("merged.idx")), idx) << name_of(type);
    EXPECT_FALSE(fs::exists(path("merged.teratron.json")));
  }
}

TEST_F(CorpusCopy, RefusesCorporaThatDoNotAgree) {
  tokenize("a", random_lines(5), false);
  tokenize("b", random_lines(5), false);
  write_dataset(path("u16"), {{1, 2}}, 1000);
  write_dataset(path("i32"), {{1, 2}}, 100'000);
  EXPECT_THAT(refused({"u16", "i32"}, {"out"}), AllOf(HasSubstr("u16"), HasSubstr("i32' as i32")));
  EXPECT_THAT(refused({"u16", "a"}, {"out"}), AllOf(HasSubstr("u16' does not"), HasSubstr("a.teratron.json")));
  BpeModel other;
  for (int byte = 0; byte < 256; ++byte) other.tokens.emplace_back(1, static_cast<char>(255 - byte));
  other.tokens.emplace_back("<|endoftext|>");
  other.special = {256};
  tokenize("other", random_lines(5), false, Tokenizer(other));
  EXPECT_THAT(refused({"a", "other"}, {"out"}), HasSubstr("was made with the tokenizer"));
  tokenize("sentences", random_lines(5), true);
  EXPECT_THAT(refused({"a", "sentences"}, {"out"}), HasSubstr("sentences' is split into sentences"));
  EXPECT_THAT(refused({"a", "a"}, {"out"}), HasSubstr("named twice"));
  EXPECT_THAT(refused({"a", "b"}, {"b"}), HasSubstr("another name"));
  EXPECT_THAT(refused({"a"}, {"x", "x"}, {0, 1, 0, 1, 0}), HasSubstr("another name"));
  EXPECT_THAT(refused({"a"}, {"x", "y"}, {0, 0, 0, 0, 0}), HasSubstr("no documents in '" + path("y")));
  EXPECT_THAT(refused({"a", "none"}, {"out"}), HasSubstr("no dataset"));
}

TEST_F(CorpusCopy, DamageIsNotCopiedAndAnOlderCorpusStays) {
  tokenize("a", random_lines(5), false);
  tokenize("b", random_lines(5), false);
  tokenize("out", random_lines(3), false);
  const std::string before = read_file(path("out.bin"));
  std::string bin = read_file(path("b.bin"));
  bin[7] = static_cast<char>(bin[7] ^ 1);
  write_file_atomically(path("b.bin"), bin);
  EXPECT_THAT(refused({"a", "b"}, {"out"}), AllOf(HasSubstr("b.bin"), HasSubstr("damaged")));
  write_file_atomically(path("b.bin"), bin + bin.substr(0, 2));
  EXPECT_THAT(refused({"a", "b"}, {"out"}), HasSubstr("b.bin"));
  EXPECT_EQ(read_file(path("out.bin")), before);
  EXPECT_EQ(verify_corpus(path("out")).faults.size(), 0);
}

// A byte is changed in each of three blocks; a sample of any one document from there is refused.
TEST_F(CorpusCopy, DamageIsNotCopiedByASampleEither) {
  std::string lines;
  for (int i = 0; i < 6; ++i) lines += "{\"text\": \"" + std::string(kChecksumBlockBytes / 4, 'a') + "\"}\n";
  tokenize("a", lines, false);
  const std::string whole = read_file(path("a.bin"));
  for (const std::size_t document : {0, 2, 5}) {
    std::string bin = whole;
    const std::size_t at = (2 * document + 1) * whole.size() / 12;
    bin[at] = static_cast<char>(bin[at] ^ 1);
    write_file_atomically(path("a.bin"), bin);
    std::vector<std::uint8_t> parts(6, 1);
    parts[document] = 0;
    EXPECT_THAT(refused({"a"}, {"out"}, parts), AllOf(HasSubstr("a.bin"), HasSubstr("damaged"))) << document;
  }
  write_file_atomically(path("a.bin"), whole);
  EXPECT_EQ(copy({"a"}, {"out"}, {1, 1, 0, 1, 1, 1}).front().documents, 1);
  // A sidecar from before blocks had checksums.
  std::string sidecar = read_file(path("a.teratron.json"));
  const std::size_t blocks = sidecar.find(',', sidecar.find("\"xxh3_64\"")), end = sidecar.find('}', blocks);
  sidecar.erase(blocks, end - blocks);
  write_file_atomically(path("a.teratron.json"), sidecar);
  EXPECT_EQ(copy({"a"}, {"out"}, {1, 1, 0, 1, 1, 1}).front().documents, 1);
  std::string bin = whole;
  bin.back() = static_cast<char>(bin.back() ^ 1);
  write_file_atomically(path("a.bin"), bin);
  EXPECT_THAT(refused({"a"}, {"out"}, {1, 1, 0, 1, 1, 1}), AllOf(HasSubstr("a.bin"), HasSubstr("damaged")));
}

TEST_F(CorpusCopy, AnIndexThatIsDamagedIsNotReadForACopy) {
  tokenize("a", "{\"text\": \"abc\"}\n{\"text\": \"defgh\"}\n", false);
  std::string idx = read_file(path("a.idx"));
  constexpr std::size_t kLengths = 34;                         // after the head: two lengths of 32 bits
  --idx[kLengths], ++idx[kLengths + 4], --idx[kLengths + 16];  // and where the second begins
  write_file_atomically(path("a.idx"), idx);
  EXPECT_THAT(refused({"a"}, {"out"}, {0, 1}), HasSubstr("a.idx"));
}

}  // namespace
}  // namespace teratron::testing
