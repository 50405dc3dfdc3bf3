// Corpora as people have them: compressed, in folders, through pipes, named by patterns; and files that are not text.
#include "data/text/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/compressed.h"
#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/text/tokenize.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Paths = std::vector<fs::path>;

class InputFiles : public ::testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  Paths found(const Paths& named) const {
    Paths files = find_input_files(named);
    for (fs::path& path : files) path = path.lexically_relative(folder_.path());
    return files;
  }
  std::string failure(const Paths& named) const {
    return message_of<UserError>([&] { find_input_files(named); });
  }
  void tokenize(const Paths& files, const std::string& to, const TokenizeOptions& options = {}) const {
    tokenize_files(byte_tokenizer(), files, folder_ / to, options);
  }
  // The bytes of both files that come of tokenising.
  std::string corpus_of(const Paths& files, const TokenizeOptions& options = {}) const {
    tokenize(files, "out", options);
    return read_file(folder_ / "out.bin") + read_file(folder_ / "out.idx");
  }
  std::string refusal_of(const fs::path& path, const TokenizeOptions& options = {}) const {
    return message_of<UserError>([&] { corpus_of({path}, options); });
  }
  TemporaryFolder folder_;
};

// Lines of JSON, some blank, or text without a NUL.
std::string random_content(std::mt19937_64& random, bool has_lines) {
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  std::string content;
  for (std::size_t i = 1 + below(60); i > 0; --i) {
    std::string text(below(300), 'a');
    for (char& letter : text) letter = static_cast<char>('a' + below(26));
    if (!has_lines) {
      content += text + "\n";
    } else if (below(5) == 0) {
      content += "\n";
    } else {
      content += nlohmann::json{{"text", text}}.dump() + "\n";
    }
  }
  return content + (has_lines ? "{\"text\": \"last\"}" : "last");
}

TEST_F(InputFiles, PlainCompressedAndStandardInputMakeTheSameCorpus) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 25; ++trial) {
    const bool has_lines = trial % 2 == 0;
    const std::string name = has_lines ? "x.jsonl" : "x.txt", content = random_content(random, has_lines);
    const std::string expected = corpus_of({file(name, content)});
    const auto middle = std::uniform_int_distribution<std::size_t>(0, content.size())(random);
    const std::string head = content.substr(0, middle), tail = content.substr(middle);
    const std::vector<std::pair<std::string, std::string>> forms = {
        {".gz", gzip(content)},  {".gz", gzip(head) + gzip(tail)},
        {".zst", zstd(content)}, {".zst", zstd(head) + zstd(tail)},
        {"", zstd(content)},  // the bytes decide, not the name
    };
    const TokenizeOptions options{.batch_bytes = std::uniform_int_distribution<std::int64_t>(1, 3000)(random)};
    for (const auto& [ending, bytes] : forms) {
      const fs::path compressed = file("form/" + name + ending, bytes);
      EXPECT_TRUE(corpus_of({compressed}, options) == expected) << name << ending;
      const StandardInput input(compressed);
      EXPECT_TRUE(corpus_of({"-"}, options) == expected) << name << ending << " through standard input";
    }
    const StandardInput input(folder_ / name);
    EXPECT_TRUE(corpus_of({"-"}, options) == expected) << name << " through standard input";
  }
}

TEST_F(InputFiles, StandardInputIsJsonLinesWhereItsFirstLineIsAnObject) {
  const auto documents_of = [&](const std::string& content, const TokenizeOptions& options = {}) {
    const StandardInput input(file("in", content));
    tokenize({"-"}, "out", options);
    return IndexedDataset::open(folder_ / "out").documents();
  };
  const std::string two = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
  EXPECT_EQ(documents_of(two), 2);
  EXPECT_EQ(documents_of("\xEF\xBB\xBF\n \r\n" + two), 2);
  EXPECT_EQ(documents_of("{\"text\": \"" + std::string(200'000, 'x') + "\"}\n" + two), 3);
  EXPECT_EQ(documents_of("[1]\n" + two), 1);
  EXPECT_EQ(documents_of(two, {.format = TextFormat::kText}), 1);
  const StandardInput input(file("in", "{\"text\": \"a\n" + two));
  EXPECT_THAT(refusal_of("-"), AllOf(HasSubstr("--format jsonl"), HasSubstr("--format text")));
}

TEST_F(InputFiles, ABadLineIsReportedByItsNumberThroughCompressionAndStandardInput) {
  const fs::path bad = file("bad.jsonl.zst", zstd("{\"text\": \"a\"}\n\nbad\n"));
  EXPECT_THAT(refusal_of(bad), HasSubstr("bad.jsonl.zst:3: this line is not valid JSON"));
  const StandardInput input(bad);
  EXPECT_THAT(refusal_of("-"), HasSubstr("standard input:3: this line"));
}

TEST_F(InputFiles, TheFormatOverridesNames) {
  tokenize({file("a.json.gz", gzip("{\"text\": \"a\"}\n{\"text\": \"b\"}\n"))}, "out",
           {.format = TextFormat::kJsonLines});
  EXPECT_EQ(IndexedDataset::open(folder_ / "out").documents(), 2);
}

TEST_F(InputFiles, DamagedCompressedFilesMakeNoCorpus) {
  const std::string whole = gzip(std::string(10'000, 'a') + "\n");
  EXPECT_THAT(refusal_of(file("cut.txt.gz", whole.substr(0, whole.size() - 5))),
              AllOf(HasSubstr("cut.txt.gz' is cut short"), HasSubstr("bytes")));
  std::string flipped = whole;
  flipped[whole.size() - 6] ^= 1;
  EXPECT_THAT(refusal_of(file("flipped.jsonl.gz", flipped)), HasSubstr("flipped.jsonl.gz' is damaged"));
  EXPECT_FALSE(fs::exists(folder_ / "out.idx"));
}

TEST_F(InputFiles, RefuseOtherThanTextWithItsPlace) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 30; ++trial) {
    const bool has_lines = trial % 2 == 0;
    std::string content = random_content(random, has_lines);
    const auto at = std::uniform_int_distribution<std::size_t>(0, content.size() - 1)(random);
    content[at] = '\0';
    const TokenizeOptions options{.batch_bytes = std::uniform_int_distribution<std::int64_t>(1, 3000)(random)};
    const std::string name = has_lines ? "x.jsonl" : "x.txt";
    EXPECT_THAT(refusal_of(file(name, content), options),
                HasSubstr(fmt::format("{}' is not text: it has a NUL at byte {} ", name, at)));
    EXPECT_THAT(refusal_of(file(name + ".gz", gzip(content)), options),
                HasSubstr(fmt::format("NUL at byte {} (of what", at)));
  }
  for (const char* mark : {"\xFF\xFE", "\xFE\xFF"}) {
    EXPECT_THAT(refusal_of(file("wide.txt", mark + std::string("a\0b\0", 4))),
                AllOf(HasSubstr("wide.txt' seems to be text in UTF-16"), HasSubstr("iconv")));
  }
}

TEST_F(InputFiles, TakeAllTextBelowAFolderInOrder) {
  for (const char* name : {"c/b.txt", "c/b.jsonl.gz", "c/a/z.txt.zst", "c/a.txt", "c/x.md", "c/y.gz", "c/.hidden.txt",
                           "c/.cache/d.txt", "c/table.json", "c/B.jsonl"}) {
    file(name, "{\"text\": \"x\"}");
  }
  fs::create_directory_symlink("..", folder_ / "c/a/up");  // a circle
  EXPECT_THAT(found({folder_ / "c"}), ElementsAre("c/B.jsonl", "c/a.txt", "c/a/z.txt.zst", "c/b.jsonl.gz", "c/b.txt"));
  EXPECT_THAT(found({folder_ / "c/x.md"}), ElementsAre("c/x.md"));  // what is named is taken
  fs::create_directories(folder_ / "empty/below");
  EXPECT_THAT(failure({folder_ / "empty"}), AllOf(HasSubstr("empty'"), HasSubstr("no .txt, .jsonl or .parquet")));
  fs::create_directory_symlink(folder_ / "c", folder_ / "link");
  EXPECT_EQ(found({folder_ / "link"}).size(), 5U);
}

TEST_F(InputFiles, PatternsAreExpandedInOrderUnlessAFileIsNamedSo) {
  for (const char* name : {"b2.txt", "b10.txt", "b1.txt", "a.txt", "d/b.txt"}) file(name, "x");
  EXPECT_THAT(found({folder_ / "b*.txt", folder_ / "?.txt"}), ElementsAre("b1.txt", "b10.txt", "b2.txt", "a.txt"));
  EXPECT_THAT(found({folder_ / "[a-d]"}), ElementsAre("d/b.txt"));
  EXPECT_THAT(failure({folder_ / "*.md"}), AllOf(HasSubstr("no file matches"), HasSubstr("*.md")));
  file("b*.txt", "x");
  EXPECT_THAT(found({folder_ / "b*.txt"}), ElementsAre("b*.txt"));
  EXPECT_THAT(failure({"-", "-"}), HasSubstr("named twice"));
}

}  // namespace
}  // namespace teratron::testing
