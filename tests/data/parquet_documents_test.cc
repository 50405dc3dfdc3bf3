// Parquet where JSON lines are read: the same documents and ids, from any of them on, and errors that name the row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/compressed.h"
#include "data/dataset_fixture.h"
#include "data/text/document_text.h"
#include "data/text/tokenize.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Paths = std::vector<fs::path>;

std::vector<std::string> documents_of(DocumentReader& reader) {
  std::vector<std::string> documents;
  for (DocumentBatch batch; reader.next(batch);) {
    for (const RawDocument& one : batch.documents) documents.emplace_back(one.bytes);
  }
  return documents;
}

class ParquetDocuments : public ::testing::Test {
 protected:
  fs::path copy(const std::string& name, const std::string& bytes) const {
    write_file_atomically(folder_ / name, bytes);
    return folder_ / name;
  }
  std::string fault(const fs::path& file, TextFormat format = TextFormat::kAuto,
                    const std::string& key = "text") const {
    return message_of<UserError>(
        [&] { tokenize_files(byte_tokenizer(), Paths{file}, folder_ / "bad", {.format = format, .json_key = key}); });
  }
  TemporaryFolder folder_;
};

TEST_F(ParquetDocuments, HaveTheIdsOfTheSameTextsAsJsonLines) {
  for (const std::string key : {"text", "url"}) {
    const TokenizeOptions options{.json_key = key, .batch_bytes = 1000};
    tokenize_files(byte_tokenizer(), Paths{golden_parquet() / "fineweb.jsonl"}, folder_ / "lines", options);
    for (const char* file : {"fineweb-snappy", "fineweb-zstd", "fineweb-gzip", "fineweb-deltas"}) {
      tokenize_files(byte_tokenizer(), Paths{golden_parquet() / (std::string(file) + ".parquet")}, folder_ / "rows",
                     options);
      for (const char* ending : {".bin", ".idx"}) {
        EXPECT_EQ(read_file(folder_ / ("rows" + std::string(ending))),
                  read_file(folder_ / ("lines" + std::string(ending))))
            << file << key;
      }
    }
  }
}

TEST_F(ParquetDocuments, GoOnAtTheEndOfAnyBatch) {
  const Paths files = {golden_parquet() / "chats-lz4.parquet", golden_parquet() / "fineweb-zstd.parquet",
                       golden_parquet() / "fineweb.jsonl"};
  constexpr std::int64_t kBatchBytes = 1000;
  DocumentReader whole(files, kBatchBytes);
  const std::vector<std::string> all = documents_of(whole);
  DocumentReader reader(files, kBatchBytes);
  std::size_t read = 0;
  std::int64_t bytes = 0;
  for (DocumentBatch batch; reader.next(batch);) {
    read += batch.documents.size();
    bytes += batch.bytes_read;
    DocumentReader rest(files, kBatchBytes);
    rest.skip_to(reader.position());
    EXPECT_EQ(documents_of(rest), std::vector(all.begin() + static_cast<std::ptrdiff_t>(read), all.end())) << read;
  }
  EXPECT_EQ(read, 10U + 24U + 24U);
  EXPECT_EQ(bytes, reader.total_bytes());
}

TEST_F(ParquetDocuments, AreRecognisedByTheirBytesUnderAnyName) {
  const std::string bytes = read_file(golden_parquet() / "fineweb-snappy.parquet");
  for (const char* name : {"a", "a.jsonl", "a.txt", "a.parquet"}) {
    DocumentReader reader(Paths{copy(name, bytes)}, 1 << 20);
    reader.stay_silent();
    EXPECT_EQ(documents_of(reader).size(), 24U) << name;
  }
  fs::create_directory(folder_ / "folder");
  copy("folder/one.parquet", bytes);
  DocumentReader reader(Paths{folder_ / "folder"}, 1 << 20);
  EXPECT_EQ(documents_of(reader).size(), 24U);
  EXPECT_EQ(recognise_content("PAR1S are what they are.\n", "a").kind, ContentKind::kText);
}

TEST_F(ParquetDocuments, AreReadColumnByColumnWhereTheTextAloneIsWanted) {
  DocumentReader reader(Paths{golden_parquet() / "fineweb-snappy.parquet"}, 1 << 20);
  reader.take_columns({"language"});
  EXPECT_EQ(documents_of(reader)[0], R"({"language": "en"})");
}

TEST_F(ParquetDocuments, WithFaultsAreRefusedByTheRow) {
  EXPECT_THAT(
      fault(golden_parquet() / "fineweb-zstd.parquet", TextFormat::kAuto, "body"),
      AllOf(HasSubstr("fineweb-zstd.parquet, row 1: this object has no \"body\""), HasSubstr("\"text\", \"id\"")));
  EXPECT_THAT(fault(golden_parquet() / "types-zstd.parquet"), HasSubstr("types-zstd.parquet, row 3: \"text\" is null"));
  EXPECT_THAT(fault(golden_parquet() / "types-zstd.parquet", TextFormat::kAuto, "int8"), HasSubstr("is a number"));
}

TEST_F(ParquetDocuments, ThatCannotBeReadFromTheirEndAreRefused) {
  const std::string bytes = read_file(golden_parquet() / "fineweb-snappy.parquet");
  EXPECT_THAT(fault(copy("a.parquet.gz", gzip(bytes))), HasSubstr("compressed once more"));
  EXPECT_THAT(fault(copy("cut.parquet", bytes.substr(0, bytes.size() / 2))), HasSubstr("cut.parquet' is damaged"));
  EXPECT_THAT(fault(copy("b.parquet", bytes), TextFormat::kJsonLines), HasSubstr("leave --format out"));
  EXPECT_THAT(fault(folder_ / "b.parquet", TextFormat::kText), HasSubstr("NUL"));
  EXPECT_THAT(fault(copy("lfs.parquet", "version https://git-lfs.github.com/spec/v1\n")), HasSubstr("git lfs pull"));
  const StandardInput input(folder_ / "b.parquet");
  EXPECT_THAT(fault("-"), HasSubstr("name the file"));
}

}  // namespace
}  // namespace teratron::testing
