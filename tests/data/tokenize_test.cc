// Tokenising: documents come out in the order of the files and lines, whatever the batches and threads, and a file that
// is not what it should be is told by file and line.
#include "data/text/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/host/threads.h"
#include "data/dataset_fixture.h"
#include "data/indexed/corpus_sidecar.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Files = std::vector<std::filesystem::path>;

// The documents' bytes: with a tokenizer of bytes, a dataset reads as text. `|` stands for the end of text.
std::vector<std::string> texts_of(const std::filesystem::path& prefix) {
  const auto dataset = IndexedDataset::open(prefix);
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < dataset.documents(); ++i) {
    Document tokens(static_cast<std::size_t>(dataset.document(i).size()));
    dataset.read(dataset.document(i).begin, tokens);
    std::string& text = texts.emplace_back();
    for (const std::int32_t token : tokens) text += token == 256 ? '|' : static_cast<char>(token);
  }
  return texts;
}

class Tokenize : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  TokenizeCounts run(const Files& files, const TokenizeOptions& options = {}) const {
    return tokenize_files(byte_tokenizer(), files, folder_ / "out", options);
  }
  std::string failure(const Files& files, const TokenizeOptions& options = {}) const {
    return message_of<UserError>([&] { run(files, options); });
  }
  TemporaryFolder folder_;
};

TEST_F(Tokenize, ATextFileIsADocument) {
  const auto counts = run({file("b.txt", "\xEF\xBB\xBFtwo\nlines\n"), file("a.rst", "any\x01 byte \u00E9")});
  EXPECT_THAT(texts_of(folder_ / "out"), ElementsAre("two\nlines\n|", "any\x01 byte \u00E9|"));
  EXPECT_EQ(counts.documents, 2);
  EXPECT_EQ(counts.bytes, 22);
  EXPECT_EQ(counts.tokens, 24);
}

TEST_F(Tokenize, ALineOfJsonIsADocument) {
  const auto counts = run({file("a.jsonl",
                                "\xEF\xBB\xBF{\"id\": 1, \"text\": \"a \\u00e9 \\ud83d\\ude00\\n\"}\r\n"
                                "\n  \t\n"
                                "{\"text\": \"\"}\n"
                                "{\"text\": \"<|endoftext|>\", \"more\": [1, {\"text\": 2}]}")});
  EXPECT_THAT(texts_of(folder_ / "out"), ElementsAre("a \xC3\xA9 \xF0\x9F\x98\x80\n|", "<|endoftext|>|"));
  EXPECT_EQ(counts.documents, 2);
  EXPECT_EQ(counts.empty_documents, 1);
  EXPECT_EQ(counts.bytes, 10 + 13);
}

TEST_F(Tokenize, TheKeyAndTheEndOfTextAreOptions) {
  const TokenizeOptions options{.json_key = "body", .append_end_of_text = false};
  run({file("a.jsonl", "{\"text\": 1, \"body\": \"x\"}\n")}, options);
  EXPECT_THAT(texts_of(folder_ / "out"), ElementsAre("x"));
}

TEST_F(Tokenize, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(1);
  std::vector<std::string> expected;
  Files files;
  for (int f = 0; f < 7; ++f) {
    std::string content;
    for (int line = 0; line < 40; ++line) {
      std::string text(std::uniform_int_distribution<std::size_t>(1, 300)(random), 'a');
      for (char& letter : text) letter = static_cast<char>(std::uniform_int_distribution<int>('a', 'z')(random));
      if (f % 3 == 2) {
        content = text;
      } else {
        content += "{\"text\": \"" + text + "\"}\n" + (line % 9 == 0 ? "\n" : "");
      }
      if (f % 3 != 2 || line == 39) expected.push_back(text + "|");
    }
    files.push_back(file(fmt::format("{}.{}", f, f % 3 == 2 ? "txt" : "jsonl"), content));
  }
  const int threads = thread_count();
  for (const std::int64_t batch_bytes : {1, 7, 400, 5000, 1 << 24}) {
    for (const int used : {1, 3}) {
      set_thread_count(used);
      run(files, {.batch_bytes = batch_bytes});
      EXPECT_EQ(texts_of(folder_ / "out"), expected) << batch_bytes << " bytes a batch, " << used << " threads";
    }
  }
  set_thread_count(threads);
}

TEST_F(Tokenize, ALongDocumentIsSplitAmongThreadsWithTheSameResult) {
  std::string text;
  for (int i = 0; text.size() < (std::size_t{3} << 20); ++i) text += fmt::format("word{} ", i);
  run({file("a.txt", text), file("b.jsonl", "{\"text\": \"" + text + "\"}\n{\"text\": \"end\"}")});
  EXPECT_THAT(texts_of(folder_ / "out"), ElementsAre(text + "|", text + "|", "end|"));
}

// The sentences of each document.
std::vector<std::vector<std::string>> sentences_of(const std::filesystem::path& prefix) {
  const auto dataset = IndexedDataset::open(prefix);
  std::vector<std::vector<std::string>> documents;
  for (std::int64_t i = 0; i < dataset.documents(); ++i) {
    auto& sentences = documents.emplace_back();
    for (std::int64_t at = dataset.first_sequence(i); at < dataset.first_sequence(i + 1); ++at) {
      Document tokens(static_cast<std::size_t>(dataset.sequence(at).size()));
      dataset.read(dataset.sequence(at).begin, tokens);
      sentences.emplace_back(tokens.begin(), tokens.end());
    }
  }
  return documents;
}

TEST_F(Tokenize, ASentenceIsASequenceWhereDocumentsAreSplit) {
  const auto counts = run({file("a.txt", " Mr. A left.  He\ncame.\n\nNo stop"), file("b.txt", "One alone.\n"),
                           file("c.txt", " \n\n\t"), file("d.txt", "Two. Three!")},
                          {.split = SentenceSplit::kPunctuation});
  EXPECT_THAT(sentences_of(folder_ / "out"), ElementsAre(ElementsAre("Mr. A left.", "He\ncame.", "No stop"),
                                                         ElementsAre("One alone."), ElementsAre("Two.", "Three!")));
  EXPECT_EQ(counts.documents, 3);
  EXPECT_EQ(counts.empty_documents, 1);
  EXPECT_EQ(counts.sentences, 6);
  EXPECT_EQ(counts.single_sentences, 1);
}

TEST_F(Tokenize, ALineIsASequenceWhereItIsSaidToBeASentence) {
  const auto counts = run({file("a.jsonl", "{\"text\": \"One. Two.\\n\\n three \"}\n{\"text\": \"four\"}\n")},
                          {.split = SentenceSplit::kLines});
  EXPECT_THAT(sentences_of(folder_ / "out"), ElementsAre(ElementsAre("One. Two.", "three"), ElementsAre("four")));
  EXPECT_EQ(counts.single_sentences, 1);
  EXPECT_EQ(read_sidecar(folder_ / "out")->unit, SequenceUnit::kLine);
}

TEST_F(Tokenize, SplittingNeedsNoEndOfTextAndIsTheSameForAllThreadsAndBatches) {
  std::string text, lines;
  for (int i = 0; text.size() < (std::size_t{1} << 20) + 5; ++i) text += fmt::format("Sentence {} goes on. ", i);
  for (int i = 0; i < 300; ++i) lines += fmt::format("{{\"text\": \"Line {}. {}\"}}\n", i, i % 3 == 0 ? "" : "Is it?");
  const Files files = {file("a.txt", text), file("b.jsonl", lines)};
  const int threads = thread_count();
  std::vector<std::vector<std::vector<std::string>>> found;
  for (const int used : {1, 3}) {
    set_thread_count(used);
    for (const std::int64_t batch_bytes : {100, 1 << 24}) {
      tokenize_files(byte_tokenizer(false), files, folder_ / "out",
                     {.split = SentenceSplit::kPunctuation, .batch_bytes = batch_bytes});
      found.push_back(sentences_of(folder_ / "out"));
    }
  }
  set_thread_count(threads);
  ASSERT_EQ(found[0].size(), 301U);
  ASSERT_GT(found[0][0].size(), 40'000U);
  EXPECT_EQ(found[0][0][40'000], "Sentence 40000 goes on.");
  EXPECT_EQ(found[0][2], (std::vector<std::string>{"Line 1.", "Is it?"}));
  for (const auto& other : found) EXPECT_EQ(other, found[0]);
}

TEST_F(Tokenize, ProgressEndsWithAllBytesRead) {
  const Files files = {file("a.jsonl", "{\"text\": \"x\"}\n\n{\"text\": \"y\"}\n\n\n"), file("b.txt", "text"),
                       file("c.jsonl", "\n\n")};
  for (const std::int64_t batch_bytes : {1, 1 << 20}) {
    std::vector<TokenizeProgress> seen;
    TokenizeOptions options{.batch_bytes = batch_bytes};
    options.progress = [&](const TokenizeProgress& progress) { seen.push_back(progress); };
    const auto counts = run(files, options);
    ASSERT_FALSE(seen.empty());
    for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i].bytes_read, seen[i - 1].bytes_read);
    EXPECT_EQ(seen.back().bytes_read, 37);
    EXPECT_EQ(seen.back().bytes_total, 37);
    EXPECT_EQ(seen.back().counts.tokens, counts.tokens);
  }
}

TEST_F(Tokenize, ABadLineIsReportedByFileAndLine) {
  const std::string good = "{\"text\": \"fine\"}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"text\": \"open", "not valid JSON"},
      {"{\"text\": \"x\"} trailing", "not valid JSON"},
      {"{\"text\": \"x\", \"more\": }", "not valid JSON"},
      {"{\"text\": \"bad \xff byte\"}", "not UTF-8: 0xff at byte 14"},
      {"{\"text\": \"caf\xe9\"}", "iconv -f WINDOWS-1252"},
      {"{\"n\": 1e400, \"text\": \"bad \\x\"}", "\\x is no escape"},
      {"{\"text\": \"a\", \"n\": NaN}", "NaN is no number of JSON"},
      {"{\"n\": -Infinity, \"text\": \"a\"}", "Infinity is no number of JSON"},
      {"{\"text\": \"a\", }", "a comma comes before }"},
      {"{\"n\": [1, 2,], \"text\": \"a\"}", "a comma comes before ]"},
      {"{\"text\": \"a\"} {\"text\": \"b\"}", "another object follows its end"},
      {"{'text': 'a'}", "strings stand in \""},
      {"{\"text\": \"a\tb\"}", "a control character in a string"},
      {"{\"text\": \"open", "cut short"},
      {"plain text", "not valid JSON"},
      {"[\"text\"]", "not a JSON object"},
      {"\"text\"", "not a JSON object"},
      {"{\"title\": \"t\", \"body\": \"b\"}", "no \"text\" (its keys: \"title\", \"body\"); name the key of the text"},
      {"{}", "(its keys: none)"},
      {"{\"text\": [\"x\"]}", "\"text\" is a list, not a string"},
      {"{\"text\": {}}", "\"text\" is an object, not a string"},
      {"{\"text\": true}", "\"text\" is true, not a string"},
      {"{\"text\": -1.5}", "\"text\" is a number, not a string"},
      {"{\"text\": null}", "\"text\" is null, not a string"},
      {"{\"text\": \"a\\u0000b\"}", "\"text\" holds a NUL"},
  };
  for (const auto& [line, expected] : cases) {
    const auto bad = file("bad.jsonl", good + "\n" + good + line + "\n" + good + line + "\n");
    for (const std::int64_t batch_bytes : {1, 1 << 20}) {
      EXPECT_THAT(failure({file("good.txt", "text"), bad}, {.batch_bytes = batch_bytes}),
                  AllOf(HasSubstr("bad.jsonl:4: "), HasSubstr(expected)))
          << line;
    }
  }
}

TEST_F(Tokenize, NamesTheFirstOfManyBadLines) {
  std::string content;
  for (int i = 0; i < 1000; ++i) content += i < 500 ? "{\"text\": \"fine\"}\n" : "bad\n";
  EXPECT_THAT(failure({file("a.jsonl", content)}), HasSubstr("a.jsonl:501: "));
}

TEST_F(Tokenize, ACorpusWithoutTextIsReported) {
  EXPECT_THAT(failure({}), HasSubstr("no text files were given"));
  EXPECT_THAT(failure({file("a.txt", "")}), AllOf(HasSubstr("no text in '"), HasSubstr("nothing was written")));
  EXPECT_THAT(failure({file("a.txt", ""), file("b.jsonl", "\n{\"text\":\"\"}\n")}), HasSubstr("and 1 more file"));
  EXPECT_THAT(failure({file("a.jsonl", "")}), HasSubstr("no text in '"));
}

TEST_F(Tokenize, AMissingFileIsReportedBeforeAnythingIsRead) {
  TokenizeOptions options;
  options.progress = [](const TokenizeProgress&) { FAIL() << "work was done"; };
  EXPECT_THAT(failure({file("a.txt", "text"), folder_ / "none.jsonl"}, options),
              AllOf(HasSubstr("none.jsonl"), HasSubstr("No such file")));
}

TEST_F(Tokenize, ATokenizerWithoutEndOfTextIsReported) {
  const Files files = {file("a.txt", "text")};
  const Tokenizer tokenizer = byte_tokenizer(false);
  EXPECT_THAT(message_of<UserError>([&] { tokenize_files(tokenizer, files, folder_ / "out"); }),
              HasSubstr("no \"<|endoftext|>\""));
  tokenize_files(tokenizer, files, folder_ / "out", {.append_end_of_text = false});
  EXPECT_THAT(texts_of(folder_ / "out"), ElementsAre("text"));
}

TEST_F(Tokenize, AFailureLeavesTheOldDatasetAndNothingElse) {
  run({file("a.txt", "old")});
  failure({file("b.jsonl", "{\"text\": \"new\"}\nbad\n")});
  failure({file("c.txt", "")});
  EXPECT_THAT(texts_of(folder_ / "out"), ElementsAre("old|"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().string(), ::testing::Not(EndsWith(".partial")));
  }
}

TEST_F(Tokenize, FoldersOfThePrefixAreMadeAndAFileInTheirPlaceIsAnError) {
  const Files files = {file("a.txt", "text")};
  tokenize_files(byte_tokenizer(), files, folder_ / "new/folder/out");
  EXPECT_THAT(texts_of(folder_ / "new/folder/out"), ElementsAre("text|"));
  EXPECT_THAT(message_of<UserError>([&] { tokenize_files(byte_tokenizer(), files, folder_ / "a.txt/out"); }),
              HasSubstr("a.txt"));
}

// A pipe has no end before its writer leaves, however its lines come.
TEST_F(Tokenize, PipesAreReadAsFilesAre) {
  for (const char* name : {"pipe.jsonl", "pipe.txt"}) {
    const bool has_lines = std::string_view(name).ends_with("jsonl");
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
    std::thread writer([&] {
      std::ofstream stream(folder_ / name);
      const std::vector<std::string> parts = {"{\"text\": \"o", "ne\"}\n{\"tex", "t\": \"two\"}"};
      for (const std::string& part : has_lines ? parts : std::vector<std::string>{"one\n", "t", "wo"}) {
        stream << part << std::flush;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    run({folder_ / name});
    writer.join();
    const std::vector<std::string> whole = {"one\ntwo|"}, lines = {"one|", "two|"};
    EXPECT_EQ(texts_of(folder_ / "out"), has_lines ? lines : whole);
  }
}

}  // namespace
}  // namespace teratron::testing
