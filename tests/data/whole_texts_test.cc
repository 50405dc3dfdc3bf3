// All texts of files at once: a plain file is one text, an object or a row another, however they are stored.
#include "data/text/whole_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/compressed.h"
#include "base/error.h"
#include "data/dataset_fixture.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WholeTextsOfFiles : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  std::string fault(const fs::path& file, TextFormat format = TextFormat::kAuto) const {
    return message_of<UserError>([&] { const WholeTexts texts(std::vector{file}, format, "text"); });
  }
  TemporaryFolder folder_;
};

TEST_F(WholeTextsOfFiles, HasEveryDocumentInTheOrderOfTheFiles) {
  const std::string lines = "{\"text\": \"caf\\u00e9\", \"other\": 1}\n\n{\"text\": \"\"}\n{\"text\": \"b\\nc\"}\n";
  const std::vector<fs::path> files = {write("plain.txt", "\xEF\xBB\xBFone\ntwo\n"), write("lines.jsonl", lines),
                                       write("lines.jsonl.gz", gzip(lines)), write("plain.txt.gz", gzip("three")),
                                       write("array.json", "[{\"text\": \"four\"}]")};
  const WholeTexts all(files, TextFormat::kAuto, "text");
  EXPECT_THAT(all.texts(), ElementsAre("one\ntwo\n", "café", "", "b\nc", "café", "", "b\nc", "three", "four"));
  EXPECT_EQ(all.bytes(), 8U + 2 * 8 + 5 + 4);
  const WholeTexts rows(std::vector{golden_parquet() / "fineweb-zstd.parquet"}, TextFormat::kAuto, "text");
  const WholeTexts objects(std::vector{golden_parquet() / "fineweb.jsonl"}, TextFormat::kAuto, "text");
  EXPECT_GT(rows.texts().size(), 1U);
  EXPECT_EQ(rows.texts(), objects.texts());
}

// A file of more than one batch has its texts in several blocks; none of them moves.
TEST_F(WholeTextsOfFiles, KeepsTheTextsOfManyBatches) {
  std::string lines;
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) {
    texts.push_back(std::string(1 << 20, static_cast<char>('a' + i % 26)) + std::to_string(i));
    lines += "{\"text\": \"" + texts.back() + "\"}\n";
  }
  const WholeTexts all(std::vector{write("many.jsonl", lines)}, TextFormat::kAuto, "text");
  EXPECT_TRUE(std::ranges::equal(all.texts(), texts));
}

TEST_F(WholeTextsOfFiles, RefusesBytesThatAreNoTextUnlessTheUserSaysThatTheyAre) {
  const fs::path latin = write("latin.txt", "caf\xE9 au lait"), zero = write("zero.txt", std::string("a\0b", 3));
  EXPECT_THAT(fault(latin), HasSubstr("--format text"));
  EXPECT_EQ(fault(latin, TextFormat::kText), kNoError);
  EXPECT_THAT(fault(zero, TextFormat::kText), HasSubstr("zero.txt"));
  EXPECT_THAT(fault(write("other.jsonl", "{\"body\": \"x\"}\n")), HasSubstr("--json-key"));
  const WholeTexts plain(std::vector{write("list.jsonl", "{\"text\": 1}")}, TextFormat::kText, "text");
  EXPECT_THAT(plain.texts(), ElementsAre("{\"text\": 1}"));
}

}  // namespace
}  // namespace teratron::testing
