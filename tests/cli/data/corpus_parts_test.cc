// data merge, split and sample, through the binary.

#include <algorithm>
#include <array>

#include "base/files/decompression.h"
#include "base/lines.h"
#include "cli/binary.h"
#include "data/indexed/indexed_dataset.h"
#include "data/indexed/indexed_dataset_writer.h"

namespace teratron::testing {
namespace {

class CorpusParts : public FolderTest {
 protected:
  // Documents [begin, end) as lines of JSON.
  void write_lines(const std::string& name, int begin, int end) const {
    std::string lines;
    for (int i = begin; i < end; ++i) {
      lines += Json{{"n", i}, {"text", std::string(static_cast<std::size_t>(i % 17 + 1), 'a')}}.dump() + "\n";
    }
    write_file_atomically(path(name), lines);
  }
  void tokenize(const std::string& name) const {
    if (!fs::exists(path("tokenizer"))) {
      succeed({"tokenizer", "train", "--vocab-size", "257", "--out", path("tokenizer"), path(name + ".jsonl")});
    }
    succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path(name), path(name + ".jsonl")});
  }
  std::string refused(const Words& words) const {
    const auto before = folder_.entries();
    const std::string errors = testing::refused(words);
    EXPECT_EQ(std::ranges::count(errors, '\n'), 1) << errors;
    EXPECT_EQ(folder_.entries(), before);
    return errors;
  }
  std::vector<std::string> lines_of(const std::string& name) const {
    return testing::lines_of(read_decompressed(path(name)));
  }
};

TEST_F(CorpusParts, MergedShardsAreTheCorpusOfAllText) {
  write_lines("all.jsonl", 0, 90);
  write_lines("shard-1.jsonl", 0, 50);
  write_lines("shard-2.jsonl", 50, 90);
  for (const std::string name : {"all", "shard-1", "shard-2"}) tokenize(name);
  const auto json = json_of({"data", "merge", path("shard-*"), "--out", path("merged")});
  EXPECT_EQ(json["documents"], 90);
  for (const std::string ending : {".bin", ".idx", ".teratron.json"}) {
    EXPECT_EQ(read_file(path("merged" + ending)), read_file(path("all" + ending))) << ending;
  }
  succeed({"data", "verify", path("merged"), "--tokenizer", path("tokenizer")});
  // Cut again into the parts of one seed, which hold each document once and in order.
  const Words split = {"data", "split", path("merged"), "--parts", "train=8,valid=1,test=1", "--out"};
  const auto parts = json_of(with(split, {path("cut/parts")}));
  EXPECT_EQ(parts["parts"][0]["documents"], 72);
  EXPECT_EQ(parts["parts"][1]["documents"], 9);
  EXPECT_EQ(parts["parts"][2]["documents"], 9);
  succeed({"data", "verify", path("cut/parts-valid"), "--tokenizer", path("tokenizer")});
  json_of(with(split, {path("cut/again")}));
  json_of(with(split, {path("cut/other"), "--seed", "5"}));
  EXPECT_EQ(read_file(path("cut/parts-test.bin")), read_file(path("cut/again-test.bin")));
  EXPECT_NE(read_file(path("cut/parts-test.idx")), read_file(path("cut/other-test.idx")));
  const auto by_tokens = json_of(with(split, {path("cut/tokens"), "--by", "tokens"}));
  EXPECT_NEAR(by_tokens["parts"][1]["tokens"].get<double>(), json["tokens"].get<double>() / 10, 18);
}

TEST_F(CorpusParts, LinesAreSplitAndSampledAsTheyAre) {
  write_lines("in.jsonl", 0, 200);
  const std::vector<std::string> all = lines_of("in.jsonl");
  succeed({"data", "split", path("in.jsonl"), "--parts", "a=0.5", "b=0.5", "--out", path("part.jsonl.zst")});
  std::vector<std::string> a = lines_of("part-a.jsonl.zst"), b = lines_of("part-b.jsonl.zst"), both;
  EXPECT_EQ(a.size(), 100);
  succeed({"data", "split", path("in.jsonl"), "--parts", "a=0.5", "b=0.5", "--out", path("part.JSONL.ZST")});
  succeed({"data", "split", path("in.jsonl"), "--parts", "a=0.5", "b=0.5", "--out", path("part.jsonl.ndjson")});
  EXPECT_EQ(read_file(path("part-a.JSONL.ZST")), read_file(path("part-a.jsonl.zst")));
  EXPECT_EQ(lines_of("part.jsonl-a.ndjson"), a);
  const auto place = [&](const std::string& line) { return std::ranges::find(all, line) - all.begin(); };
  EXPECT_TRUE(std::ranges::is_sorted(a, {}, place));
  EXPECT_TRUE(std::ranges::is_sorted(b, {}, place));
  std::ranges::merge(a, b, std::back_inserter(both), {}, place, place);
  EXPECT_EQ(both, all);
  // A sample is the same of lines and of tokens.
  tokenize("in");
  const Words sample = {"--documents", "20", "--seed", "3", "--out"};
  const Outcome lines = must(with({"data", "sample", path("in.jsonl")}, with(sample, {"-"})));
  EXPECT_EQ(std::ranges::count(lines.output, '\n'), 20);
  write_file_atomically(path("sampled.jsonl"), lines.output);
  tokenize("sampled");
  succeed(with({"data", "sample", path("in")}, with(sample, {path("tokens")})));
  EXPECT_EQ(read_file(path("tokens.bin")), read_file(path("sampled.bin")));
  const auto tenth = json_of({"data", "sample", path("in.jsonl"), "--share", "0.1", "--out", path("tenth.jsonl")});
  EXPECT_EQ(tenth["documents"], 20);
  EXPECT_FALSE(tenth.contains("tokens")) << "of lines they are not known";
  const auto some = json_of({"data", "sample", path("in"), "--tokens", "100", "--out", path("some")});
  EXPECT_GE(some["tokens"], 100);
  EXPECT_LT(some["tokens"], 100 + 18);
}

// Parts may lie beside their source under its name.
TEST_F(CorpusParts, SplitsACorpusBesideItself) {
  write_lines("in.jsonl", 0, 40);
  tokenize("in");
  for (const std::string ending : {"", ".jsonl"}) {
    const std::string in = path("in" + ending);
    const Words flags = {"--out", in, "--parts", "a=3,b=1", "--overwrite"};
    const auto parts = json_of(with({"data", "split", in}, flags))["parts"];
    EXPECT_EQ(parts[0]["documents"], 30);
    EXPECT_EQ(parts[0].contains("tokens"), ending.empty());
    EXPECT_EQ(parts[0].contains("sequences"), ending.empty());
    EXPECT_THAT(testing::refused(with({"data", "split", in, path("in-b" + ending)}, flags)),
                HasSubstr("choose another name"));
  }
}

TEST_F(CorpusParts, ClearErrors) {
  write_lines("in.jsonl", 0, 9);
  tokenize("in");
  const Words split = {"data", "split", path("in"), "--out", path("out"), "--parts"};
  EXPECT_THAT(refused(with(split, {"a=1,b=0"})), HasSubstr("'b=0', which is not NAME=SHARE"));
  EXPECT_THAT(refused(with(split, {"a=1,a=2"})), HasSubstr("'a' twice"));
  EXPECT_THAT(refused(with(split, {"a=99,b=1"})), HasSubstr("'b' with share 1 would be empty"));
  EXPECT_THAT(refused({"data", "split", path("in"), "--out", path("out.jsonl"), "--parts", "a=1"}),
              HasSubstr("name a PREFIX"));
  EXPECT_THAT(refused({"data", "split", path("in.jsonl"), "--out", path("out"), "--parts", "a=1"}),
              HasSubstr(".jsonl.zst"));
  // Before the lines are counted: there are none.
  EXPECT_THAT(refused({"data", "sample", path("none.jsonl"), "--documents", "1", "--out", path("o.jsonl.GZ")}),
              HasSubstr("gzip is read, not written"));
  EXPECT_THAT(
      refused({"data", "split", path("in.jsonl"), "--by", "tokens", "--out", path("o.jsonl"), "--parts", "a=1"}),
      HasSubstr("--by tokens needs a tokenised corpus"));
  const Words sample = {"data", "sample", path("in"), "--out", path("out")};
  EXPECT_THAT(refused(sample), HasSubstr("give the size of the sample by one of --documents, --tokens and --share"));
  EXPECT_THAT(refused(with(sample, {"--documents", "10"})),
              HasSubstr("the source has 9 documents, fewer than the 10 asked for"));
  EXPECT_THAT(refused(with(sample, {"--share", "0.01"})), HasSubstr("0.01 of 9 documents is none"));
  EXPECT_THAT(refused({"data", "merge", path("in"), "--out", path("in")}), HasSubstr("another name"));
  EXPECT_THAT(refused({"data", "merge", path("in.jsonl"), "--out", path("out")}), HasSubstr("cat joins them"));
  EXPECT_THAT(refused({"data", "merge", "0.7", path("in"), "--out", path("out")}), HasSubstr("weight"));
  EXPECT_THAT(refused({"data", "merge", path("none"), "--out", path("out")}), HasSubstr("no dataset"));
}

// 160 MiB of tokens go through two thirds of that.
TEST_F(CorpusParts, MemoryIsNotThatOfTheCorpus) {
#ifdef TERATRON_SANITIZED
  GTEST_SKIP() << "sanitizers keep memory that was freed; the plain build has this test too";
#endif
  {
    IndexedDatasetWriter writer(path("large"), TokenType::kU16);
    const std::vector<std::byte> tokens(std::size_t{16} << 20);
    for (int i = 0; i < 40; ++i) {
      const auto bytes = std::span(tokens).first(tokens.size() / 4 - static_cast<std::size_t>(2 * i));
      writer.add_stored_sequences(std::array{static_cast<std::int32_t>(bytes.size() / 2)});
      writer.add_stored_bytes(bytes);
      writer.end_document();
    }
    writer.commit();
  }
  constexpr std::int64_t kMost = std::int64_t{107} << 20;
  EXPECT_LT(json_of({"data", "merge", path("large"), "--out", path("merged")})["peak_memory_bytes"], kMost);
  EXPECT_EQ(fs::file_size(path("merged.bin")), fs::file_size(path("large.bin")));
  fs::remove(path("merged.bin"));
  EXPECT_LT(json_of({"data", "split", path("large"), "--out", path("p"), "--parts", "a=1,b=1"})["peak_memory_bytes"],
            kMost);
}

TEST_F(CorpusParts, PipesCannotBeReadTwice) {
  write_lines("h.jsonl", 0, 20);
  for (const std::string source : {"-", "/dev/stdin", "/dev/fd/0"}) {
    for (const std::string command : {"sample --documents 3", "split --parts a=1,b=1"}) {
      const std::string line = fmt::format("cat {} | {} data {} --out {} {}", path("h.jsonl"), TERATRON_BINARY, command,
                                           path("o.jsonl"), source);
      const Outcome outcome = ChildProgram({"/bin/sh", "-c", line}, {}, "").wait();
      EXPECT_EQ(outcome.exit_code, 2) << line;
      EXPECT_THAT(outcome.errors, HasSubstr("cannot be read twice; name files")) << line;
    }
  }
}

TEST_F(CorpusParts, LinesThatAreNoObjectsAreReported) {
  write_file_atomically(path("h.jsonl"), "{\"text\": \"a\"}\n{\"text\": \"cut\n{\"text\": NaN}\n");
  const Outcome outcome = must({"data", "sample", path("h.jsonl"), "--documents", "3", "--out", path("o.jsonl")});
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("2 lines copied"), HasSubstr("h.jsonl:2")));
}

TEST_F(CorpusParts, OtherFilesAreNotCalledDamaged) {
  write_lines("h.jsonl", 0, 3);
  for (const char* name : {"h.jsonl", "missing"}) {
    EXPECT_THAT(refused({"data", "verify", path(name)}), HasSubstr("is no tokenised corpus"));
  }
}

}  // namespace
}  // namespace teratron::testing
