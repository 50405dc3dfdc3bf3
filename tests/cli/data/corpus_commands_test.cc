// The commands of one stream of documents, through the binary.

#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/files/decompression.h"
#include "cli/binary.h"

namespace teratron::testing {
namespace {

class CorpusCommands : public FolderTest {
 protected:
  // Documents of some words, some of them with something to repair.
  void write_documents(const std::string& name, int documents) const {
    std::string lines;
    for (int i = 0; i < documents; ++i) {
      std::string text = fmt::format("Document {} \u201cquotes\u201d caf\u00c3\u00a9", i % 50);
      for (int word = 0; word < i % 50; ++word) text += fmt::format(" word{}", word * (i % 50));
      lines += Json{{"n", i}, {"text", text}, {"url", fmt::format("http://a.org/{}", i)}}.dump() + "\n";
    }
    write_file_atomically(path(name), lines);
  }
};

TEST_F(CorpusCommands, CleanRepairsCountsAndSaysWhatItDropped) {
  write_documents("in.jsonl", 100);
  succeed({"tokenizer", "train", "--vocab-size", "300", "--out", path("tokenizer"), path("in.jsonl")});
  const Words clean = {"data", "clean", path("in.jsonl"), "--tokenizer", path("tokenizer"), "--min-tokens", "60"};
  const auto json = json_of(with(clean, {"--out", path("out.jsonl"), "--dropped", path("dropped.jsonl")}));
  EXPECT_EQ(json["documents"], 100);
  const int kept = json["kept"], dropped = json["stages"][0]["reasons"]["short"];
  EXPECT_GT(kept, 0);
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(kept + dropped, 100);
  EXPECT_THAT(read_file(path("out.jsonl")), AllOf(HasSubstr("\\\"quotes\\\" caf\u00e9"), HasSubstr("http://a.org/")));
  EXPECT_THAT(read_file(path("dropped.jsonl")), HasSubstr("\"reason\":\"short\""));
  // The same from standard input to standard output, and compressed.
  const Outcome piped = ChildProgram({"sh", "-c",
                                      fmt::format("{} data clean - --tokenizer {} --min-tokens 60 --out - < {}",
                                                  TERATRON_BINARY, path("tokenizer"), path("in.jsonl"))})
                            .wait();
  EXPECT_EQ(piped.output, read_file(path("out.jsonl")));
  succeed(with(clean, {"--out", path("out.jsonl.zst"), "--threads", "3"}));
  EXPECT_EQ(read_decompressed(path("out.jsonl.zst")), piped.output);
}

TEST_F(CorpusCommands, ClearErrors) {
  write_documents("in.jsonl", 3);
  const Words clean = {"data", "clean", path("in.jsonl"), "--out", path("out.jsonl")};
  EXPECT_THAT(refused(clean), HasSubstr("--tokenizer"));
  EXPECT_THAT(refused(with(clean, {"--min-tokens", "0", "--then", "clean,polish"})),
              AllOf(HasSubstr("no stage 'polish'"), HasSubstr("clean is named twice")));
  EXPECT_THAT(refused(with(clean, {"--min-tokens", "0", "--max-bad-share", "2"})), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused(with(clean, {"--min-tokens", "0", "--url-lists", path("none")})), HasSubstr("domains.txt"));
  write_file_atomically(path("bad.jsonl"), "{\"text\":1}\n");
  EXPECT_THAT(refused({"data", "clean", path("bad.jsonl"), "--min-tokens", "0", "--out", path("out.jsonl")}),
              AllOf(HasSubstr("1 of 1"), HasSubstr("--max-bad-share"), HasSubstr("bad.jsonl:1")));
  EXPECT_FALSE(fs::exists(path("out.jsonl")));
}

TEST_F(CorpusCommands, StagesInOneRunDoWhatTheyDoOneAfterAnother) {
  if (!kHasTextTools) GTEST_SKIP() << "built without text tools";
  std::string lines;
  const std::string german = "Die Leute sitzen auf ihren Taschen und reden \u00c3\u00bcber das Wetter von gestern. ";
  const std::string english = "People sat on their bags and talked about the weather of the day before. ";
  for (int i = 0; i < 60; ++i) {
    const std::string text =
        (i % 5 == 0 ? german : english) + fmt::format("Number {0} of {0}, and {0} so {0} on &amp; {0}.", i % 7);
    lines += Json{{"n", i}, {"text", text}}.dump() + "\n";
  }
  write_file_atomically(path("in.jsonl"), lines);
  const auto json = json_of({"data", "clean", path("in.jsonl"), "--min-tokens", "0", "--out", path("once.jsonl"),
                             "--then", "langid,dedup", "--dropped", path("dropped.jsonl")});
  succeed({"data", "clean", path("in.jsonl"), "--min-tokens", "0", "--out", path("a.jsonl.zst")});
  succeed({"data", "langid", path("a.jsonl.zst"), "--out", path("b.jsonl")});
  succeed({"data", "dedup", path("b.jsonl"), "--out", path("c.jsonl"), "--threads", "1"});
  EXPECT_EQ(read_file(path("once.jsonl")), read_file(path("c.jsonl")));
  EXPECT_EQ(json["kept"], 7);
  EXPECT_EQ(json["stages"][1]["reasons"]["language"], 12);
  EXPECT_EQ(json["stages"][2]["reasons"]["duplicate"], 41);
  const std::string dropped = read_file(path("dropped.jsonl"));
  EXPECT_EQ(std::ranges::count(dropped, '\n'), 53);
  EXPECT_THAT(dropped, AllOf(HasSubstr("\"detail\":\"de, "), HasSubstr("in.jsonl:2\"")));
}

TEST_F(CorpusCommands, OverlapIsWhatDecontaminateTakesOut) {
  const std::string test = "The quick brown fox jumps over the lazy dog while nobody in the house looks at it";
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    std::string text;
    for (int sentence = 0; sentence < 30; ++sentence) {
      text += fmt::format("Sentence {} of document {} has words of its own, {}. ", sentence, i, i * 100 + sentence);
      if (sentence == 15 && i == 3) text += test + ". ";
    }
    lines += Json{{"text", text}}.dump() + "\n";
  }
  write_file_atomically(path("training.jsonl"), lines);
  write_file_atomically(path("test.txt"), test + "\nand something that is not in the training set at all");
  const Words overlap = {"data", "overlap", path("training.jsonl"), "--test", path("test.txt")};
  const auto exact = json_of(with(overlap, {"--exact"}));
  EXPECT_EQ(exact["found"], 10);  // 17 words have ten runs of eight
  EXPECT_EQ(exact["test_ngrams"], 21);
  EXPECT_EQ(json_of(overlap)["found"], 10);
  const auto json = json_of(
      {"data", "decontaminate", path("training.jsonl"), "--evaluation", path("test.txt"), "--out", path("out.jsonl")});
  EXPECT_EQ(json["kept"], 21);  // one document in two pieces
  EXPECT_EQ(json["stages"][0]["changed"], 2);
  EXPECT_EQ(json_of({"data", "overlap", path("out.jsonl"), "--test", path("test.txt"), "--exact"})["found"], 0);
  EXPECT_THAT(refused({"data", "decontaminate", path("training.jsonl"), "--out", path("o.jsonl")}),
              HasSubstr("--evaluation"));
}

TEST_F(CorpusCommands, AnUnknownLanguageOrABuildWithoutTheDetectorIsRefused) {
  write_documents("in.jsonl", 3);
  const Words langid = {"data", "langid", path("in.jsonl"), "--out", path("o.jsonl"), "--language", "english"};
  if (kHasTextTools) {
    EXPECT_THAT(refused(langid), HasSubstr("'english'"));
    return;
  }
  for (const Words& words : {langid, Words{"data", "extract", path("in.jsonl"), "--out", path("o.jsonl")}}) {
    const Outcome outcome = run_teratron(words);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors, HasSubstr("-DTERATRON_TEXT_TOOLS=ON"));
  }
}

TEST_F(CorpusCommands, ExtractGoesOnToOtherStagesInOnePass) {
  if (!kHasTextTools) GTEST_SKIP() << "built without text tools";
  std::string warc;
  const auto add = [&](const std::string& page) {
    const std::string http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page;
    warc += fmt::format(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.org/\r\nContent-Type: "
        "application/http\r\nContent-Length: {}\r\n\r\n{}\r\n\r\n",
        http.size(), http);
  };
  const std::string english =
      "<p>People sat on their bags and talked about the weather of the day before. They were in no "
      "hurry, and the ferry was still on the other side of the river.</p>";
  add("<nav>Home</nav>" + english);
  add("<nav>Start</nav><p>Die Leute sitzen auf ihren Taschen und reden \u00fcber das Wetter von gestern. Keiner hat es "
      "eilig, und die F\u00e4hre liegt noch immer am anderen Ufer des Flusses.</p>");
  add("<nav>Nothing</nav>");
  write_file_atomically(path("in.warc"), warc);
  const auto json = json_of({"data", "extract", path("in.warc"), "--out", path("out.jsonl"), "--then", "langid"});
  EXPECT_EQ(json["documents"], 3);
  EXPECT_EQ(json["kept"], 1);
  EXPECT_EQ(json["stages"][0]["reasons"]["no article"], 1);
  EXPECT_EQ(json["stages"][1]["reasons"]["language"], 1);
  EXPECT_THAT(read_file(path("out.jsonl")), AllOf(HasSubstr("\"text\": \"People sat"), HasSubstr("http://a.org/")));
  const auto piped = [&](const std::string& file, const std::string& flags) {
    return ChildProgram({"sh", "-c", fmt::format("{} data extract - --out - {} < {}", TERATRON_BINARY, flags, file)})
        .wait();
  };
  EXPECT_EQ(piped(path("in.warc"), "--then langid").output, read_file(path("out.jsonl")));
  write_file_atomically(path("in.html"), english);
  EXPECT_THAT(piped(path("in.html"), "").output, HasSubstr("People sat"));
  write_file_atomically(path("in.jsonl"), Json{{"page", english}}.dump());
  EXPECT_THAT(piped(path("in.jsonl"), "").errors, HasSubstr("--format jsonl"));
  EXPECT_THAT(piped(path("in.jsonl"), "--format jsonl --field page").output, HasSubstr("People sat"));
  EXPECT_THAT(refused({"data", "langid", path("in.warc"), "--out", path("o.jsonl"), "--then", "extract"}),
              HasSubstr("can only be the first"));
}

// 200 MB that are no page pass in little memory, and so does a page of that size, which is dropped.
TEST_F(CorpusCommands, ExtractHoldsNoLargeRecord) {
  if (!kHasTextTools) GTEST_SKIP() << "built without text tools";
#ifdef TERATRON_SANITIZED
  GTEST_SKIP() << "sanitizers keep memory that was freed; the plain build has this test too";
#endif
  constexpr std::size_t kContent = std::size_t{200} << 20;
  const auto head = [&](const std::string& type, const std::string& http) {
    return fmt::format("WARC/1.0\r\nWARC-Type: {}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n{}",
                       type, http.size() + kContent, http);
  };
  const std::string file = path("in.warc");
  for (const std::string& one : {head("resource", ""), head("response", "HTTP/1.1 200 OK\nContent-Type: video/mp4\n\n"),
                                 head("response", "HTTP/1.1 200 OK\nContent-Type: text/html\n\n")}) {
    const auto before = fs::exists(file) ? fs::file_size(file) : 0;
    std::ofstream(file, std::ios::app) << one;
    fs::resize_file(file, before + one.size() + kContent);  // zeros, which take no room on the disk
    std::ofstream(file, std::ios::app) << "\r\n\r\n";
  }
  const auto json = json_of({"data", "extract", file, "--out", path("out.jsonl"), "--threads", "1"});
  EXPECT_EQ(json["stages"][0]["reasons"], (Json{{"not html", 1}, {"too large", 1}}));
  EXPECT_EQ(json["stages"][0]["records: resource"], 1);
  EXPECT_LT(json["peak_memory_bytes"], std::uint64_t{100} << 20);
}

// Killed at any moment, a run leaves no output; begun again, it gives the bytes of one that was not killed.
TEST_F(CorpusCommands, AKilledRunLeavesNothingThatIsReadLater) {
  write_documents("in.jsonl", 20'000);
  const auto command = [&](const std::string& out) {
    return Words{TERATRON_BINARY, "data", "clean", path("in.jsonl"), "--min-tokens", "0", "--out", path(out)};
  };
  ASSERT_EQ(ChildProgram(command("whole.jsonl")).wait().exit_code, 0);
  int killed = 0;
  for (const int milliseconds : {5, 20, 60, 120}) {
    ChildProgram run(command("out.jsonl"));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ::kill(run.pid(), SIGKILL);
    if (run.wait().exit_code == 0) break;
    ++killed;
    EXPECT_FALSE(fs::exists(path("out.jsonl")));
  }
  EXPECT_GT(killed, 0);
  ASSERT_EQ(ChildProgram(command("out.jsonl")).wait().exit_code, 0);
  EXPECT_EQ(read_file(path("out.jsonl")), read_file(path("whole.jsonl")));
  EXPECT_EQ(folder_.entries(), 3);
}

}  // namespace
}  // namespace teratron::testing
