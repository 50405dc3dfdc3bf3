// The stream itself, with stages made for the tests: order, threads, records, bad input, and files that end too soon.
#include "corpus/stream/stream.h"

#include <gmock/gmock.h>

#include "base/compressed.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "base/json_string.h"
#include "base/philox.h"
#include "base/utf8.h"
#include "corpus/stage_fixture.h"
#include "data/text/json_members.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Drops texts with a 'd', cuts those with a 'c' into two, puts an x before those with a 't'.
class LetterStage final : public Stage {
 public:
  std::string_view name() const override { return "letters"; }
  StageOutput process(Document document) const override {
    if (document.text.find('d') != std::string::npos) return dropped("has a d", document.text.substr(0, 3));
    if (document.text.find('c') != std::string::npos) {
      Document second = document;
      document.changed = second.changed = true;
      document.text = "first";
      second.text = "second";
      StageOutput output = kept(std::move(document));
      output.documents.push_back(std::move(second));
      return output;
    }
    if (document.text.find('t') == std::string::npos) return kept(std::move(document));
    document.text.insert(0, "x");
    document.changed = true;
    return kept(std::move(document));
  }
};

// Drops every document that is as long as one before it; with a survey, as one after it.
class LengthStage final : public Stage {
 public:
  explicit LengthStage(bool surveys) : surveys_(surveys) {}
  std::string_view name() const override { return surveys_ ? "last of a length" : "first of a length"; }
  bool needs_survey() const override { return surveys_; }
  std::vector<std::uint64_t> measure(const Document& document) const override { return {document.text.size()}; }
  void note(std::int64_t number, const std::vector<std::uint64_t>& measures) override {
    last_[measures.at(0)] = number;
  }
  void settle(const Spool& spool) override { settled_ = spool.size(); }
  StageOutput process(Document document) const override {
    if (surveys_ && last_.at(document.text.size()) != document.number) return dropped("not the last", "");
    return kept(std::move(document));
  }
  std::optional<Drop> admit(const Document& document) override {
    if (surveys_ || lengths_.insert(document.text.size()).second) return std::nullopt;
    return Drop{"not the first", ""};
  }
  std::vector<Fact> facts() const override { return {{"settled", settled_}}; }

 private:
  bool surveys_;
  std::map<std::uint64_t, std::int64_t> last_;
  std::set<std::uint64_t> lengths_;
  std::int64_t settled_ = 0;
};

std::vector<std::unique_ptr<Stage>> all_stages() {
  return stages_of(std::make_unique<LetterStage>(), std::make_unique<LengthStage>(true),
                   std::make_unique<LengthStage>(false));
}

class CorpusStream : public StageTest {
 protected:
  std::string random_text(RandomSequence& random) {
    static const std::vector<std::string> pieces = {"a", "d", "t", "c", "\n", "\"", "\\", "\u00e9", "\u4e16", " ", "e"};
    std::string text;
    for (std::uint64_t left = random.below(12); left > 0; --left) text += pieces[random.below(pieces.size())];
    return text;
  }
  std::string expect_refused(const StreamOptions& options) {
    try {
      run_stages(all_stages(), options);
    } catch (const UserError& error) {
      EXPECT_FALSE(fs::exists(options.out));
      EXPECT_FALSE(fs::exists(options.dropped));
      return error.what();
    }
    ADD_FAILURE() << "not refused";
    return "";
  }
};

// The documents that the three test stages leave, by their definitions, one after another.
std::vector<std::string> expected_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> letters;
  for (const std::string& text : texts) {
    if (text.find('d') != text.npos) continue;
    if (text.find('c') != text.npos) {
      letters.insert(letters.end(), {"first", "second"});
    } else {
      letters.push_back(text.find('t') == text.npos ? text : "x" + text);
    }
  }
  std::map<std::size_t, std::size_t> last;
  for (std::size_t i = 0; i < letters.size(); ++i) last[letters[i].size()] = i;
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (last[letters[i].size()] == i) kept.push_back(letters[i]);
  }
  return kept;
}

TEST_F(CorpusStream, IsWhatStagesMakeOfOneDocumentAfterAnother) {
  RandomSequence random(RandomStream{.seed = 5});
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<std::string> texts(1 + random.below(60));
    for (std::string& text : texts) text = random_text(random);
    EXPECT_EQ(through(all_stages(), texts), expected_texts(texts));
    EXPECT_EQ(counts_.documents, std::ssize(texts));
    std::int64_t drops = 0;
    for (const StageCounts& stage : counts_.stages) {
      for (const auto& [reason, count] : stage.dropped) drops += count;
    }
    EXPECT_EQ(std::ssize(json_lines(folder_ / "dropped.jsonl")), drops);
    EXPECT_EQ(statistics_["stages"][1]["settled"], counts_.stages[1].documents_in);
    EXPECT_EQ(statistics_["kept"], expected_texts(texts).size());
  }
}

TEST_F(CorpusStream, DoesNotDependOnThreadsOrBatches) {
  RandomSequence random(RandomStream{.seed = 6});
  std::vector<std::string> texts(500);
  for (std::string& text : texts) text = random_text(random);
  write_file_atomically(folder_ / "in.jsonl", as_json_lines(texts));
  const int threads_before = thread_count();
  std::string expected, expected_drops;
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t batch : {1, 300, 1 << 20}) {
      set_thread_count(threads);
      StreamOptions one = options();
      one.batch_bytes = batch;
      run_stages(all_stages(), one);
      const std::string bytes = read_file(folder_ / "out.jsonl"), drops = read_file(folder_ / "dropped.jsonl");
      if (expected.empty()) expected = bytes, expected_drops = drops;
      EXPECT_EQ(drops, expected_drops) << threads << " threads, batches of " << batch;
      EXPECT_EQ(bytes, expected) << threads << " threads, batches of " << batch;
    }
  }
  set_thread_count(threads_before);
  EXPECT_THAT(expected, HasSubstr("\n"));
}

TEST_F(CorpusStream, KeepsAllOfARecordButItsText) {
  write_file_atomically(folder_ / "in.jsonl",
                        "{ \"n\":1.50e+3, \"text\":\"former\", \"\\ud800\": {\"text\": \"no\", "
                        "\"a\":[1,{\"b\":\"}\\\"\"}]},\t\"te\\u0078t\" : "
                        "\"tea\" , \"big\":12345678901234567890}\r\n"
                        "{\"text\":\"a\\u00e9\", \"z\": null}\n");
  run_stages(stages_of(std::make_unique<LetterStage>()), options());
  EXPECT_EQ(read_file(folder_ / "out.jsonl"),
            "{ \"n\":1.50e+3, \"text\":\"former\", \"\\ud800\": {\"text\": \"no\", "
            "\"a\":[1,{\"b\":\"}\\\"\"}]},\t\"te\\u0078t\" : "
            "\"xtea\" , \"big\":12345678901234567890}\n"
            "{\"text\":\"a\\u00e9\", \"z\": null}\n");
}

TEST_F(CorpusStream, ReadsPlainAndCompressedFilesAndWritesZstd) {
  write_file_atomically(folder_ / "a.txt", "plain \"text\"\n");
  write_file_atomically(folder_ / "b.jsonl.gz", gzip("{\"body\":\"one\"}\n"));
  write_file_atomically(folder_ / "c.jsonl.zst", zstd("{\"body\":\"two\"}\n\n{\"body\":\"three\"}"));
  const StreamOptions zstd = {.files = {folder_ / "a.txt", folder_ / "b.jsonl.gz", folder_ / "c.jsonl.zst"},
                              .out = folder_ / "out.jsonl.zst",
                              .text_key = "body"};
  const StreamCounts counts = run_stages({}, zstd);
  EXPECT_EQ(counts.kept, 4);
  EXPECT_EQ(read_decompressed(zstd.out),
            "{\"body\": \"plain \\\"text\\\"\\n\"}\n{\"body\":\"one\"}\n{\"body\":\"two\"}\n{\"body\":\"three\"}\n");
  EXPECT_THAT(expect_refused({.files = zstd.files, .out = folder_ / "out.jsonl.gz"}), HasSubstr(".jsonl.zst"));
}

TEST_F(CorpusStream, CountsWhatCannotBeReadAndFailsPastAShare) {
  std::string lines = "{\"text\":\"a\"}\n{\"text\":\"b\"\n[1]\n{\"txt\":\"a\"}\n{\"text\":\"\xFF\"}\n{\"text\":7}\n";
  for (int i = 0; i < 45; ++i) lines += "{\"text\":\"" + std::string(static_cast<std::size_t>(i) + 2, 'a') + "\"}\n";
  write_file_atomically(folder_ / "in.jsonl", lines);
  write_file_atomically(folder_ / "latin.txt", "caf\xE9");
  StreamOptions some = options();
  some.max_bad_share = 0.12;
  some.files.push_back(folder_ / "latin.txt");
  const StreamCounts counts = run_stages(all_stages(), some);
  EXPECT_EQ(counts.documents, 52);
  EXPECT_EQ(counts.bad, 6);
  EXPECT_EQ(counts.kept, 46);
  EXPECT_THAT(counts.first_bad, AllOf(HasSubstr("in.jsonl:2"), HasSubstr("not valid JSON")));
  const auto dropped = json_lines(folder_ / "dropped.jsonl");
  ASSERT_EQ(dropped.size(), 6);
  EXPECT_EQ(dropped[5]["reason"], "bad");
  EXPECT_THAT(dropped[5]["detail"].get<std::string>(), HasSubstr("not UTF-8"));
  fs::remove(some.out);
  fs::remove(some.dropped);
  some.max_bad_share = 0.11;
  EXPECT_THAT(expect_refused(some), AllOf(HasSubstr("6 of 52"), HasSubstr("in.jsonl:2")));
}

// Later documents may make up for them.
TEST_F(CorpusStream, JudgesTheShareOfBadDocumentsWhenAllAreRead) {
  std::string lines;
  for (int i = 0; i < 180; ++i) lines += "bad\n";
  for (int i = 0; i < 200'000; ++i) lines += "{\"text\":\"a\"}\n";
  write_file_atomically(folder_ / "in.jsonl", lines);
  StreamOptions some = options();
  some.batch_bytes = 500'000;
  EXPECT_EQ(run_stages({}, some).bad, 180);
}

TEST_F(CorpusStream, RefusesDamagedAndEmptyInputAndLeavesNothing) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "{\"text\":\"" + std::to_string(i * 7919) + "\"}\n";
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    write_file_atomically(folder_ / "in.jsonl", packed.substr(0, packed.size() - 20));
    EXPECT_THAT(expect_refused(options()), HasSubstr("cut short"));
  }
  write_file_atomically(folder_ / "in.jsonl", "");
  EXPECT_THAT(expect_refused(options()), HasSubstr("no documents"));
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(CorpusStream, TakesALineOfAHundredMegabytes) {
  const std::string text(std::size_t{100} << 20, 'a');
  write_file_atomically(folder_ / "in.jsonl", "{\"text\":\"b\"}\n{\"text\":\"" + text + "\"}\n{\"text\":\"bb\"}\n");
  const StreamCounts counts = run_stages(all_stages(), options());
  EXPECT_EQ(counts.kept, 3);
  EXPECT_EQ(fs::file_size(folder_ / "out.jsonl"), fs::file_size(folder_ / "in.jsonl"));
}

TEST_F(CorpusStream, FailsOnAFullDisk) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "{\"text\":\"" + std::string(static_cast<std::size_t>(i), 'a') + "\"}\n";
  write_file_atomically(folder_ / "in.jsonl", lines);
  StreamOptions full = options();
  full.out = "/dev/full";
  EXPECT_THROW(run_stages(stages_of(std::make_unique<LetterStage>()), full), EnvironmentError);
}

TEST(CorpusJson, StringsComeBackAsTheyWere) {
  RandomSequence random(RandomStream{.seed = 9});
  for (int trial = 0; trial < 200; ++trial) {
    std::string text;
    for (std::uint64_t left = random.below(20); left > 0; --left) {
      append_utf8(static_cast<char32_t>(trial % 3 == 2 ? 0x10000 + random.below(0x100000)
                                                       : random.below(trial % 3 == 0 ? 0x80 : 0xD000)),
                  text);
    }
    std::string json;
    append_json_string(text, json);
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
    EXPECT_EQ(string_member("{\"a\":1,\"b\":" + json + "}", "b"), text);
    const std::string ascii = nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true);
    EXPECT_EQ(string_member("{\"b\": " + ascii + " }", "b"), text) << ascii;
  }
  EXPECT_EQ(find_member("{}", "a"), std::nullopt);
  EXPECT_EQ(find_member(R"({"b":{"a":1}})", "a"), std::nullopt);
  EXPECT_EQ(string_member(R"({"a":1})", "a"), std::nullopt);
}

TEST_F(CorpusStream, FilesWithoutTextAreNoDocuments) {
  for (const char* text : {"", " \n\n"}) {
    write_file_atomically(folder_ / "a.txt", text);
    EXPECT_THAT(expect_refused({.files = {folder_ / "a.txt"}, .out = folder_ / "out.jsonl"}),
                HasSubstr("there are no documents"));
  }
  EXPECT_THAT(expect_refused({.files = {"/dev/null"}, .out = folder_ / "out.jsonl"}),
              HasSubstr("there are no documents"));
  write_file_atomically(folder_ / "b.jsonl", "{\"text\": \"\"}\n");
  EXPECT_EQ(run_stages({}, {.files = {folder_ / "a.txt", folder_ / "b.jsonl"}, .out = folder_ / "out.jsonl"}).kept, 1);
}

}  // namespace
}  // namespace teratron::testing
