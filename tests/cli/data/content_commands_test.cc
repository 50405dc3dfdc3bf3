// Every command that reads texts goes by what is in a file: the table of what is there and who reads it.

#include <algorithm>

#include "base/compressed.h"
#include "cli/tiny_training.h"
#include "cli/weights/bert_folder.h"

namespace teratron::testing {
namespace {

struct Reader {
  std::string name;
  Words words;         // FILE stands for the file
  std::string counts;  // what of its JSON counts the documents
};

struct Content {
  std::string name, bytes;
  std::string refusal;  // empty: three documents
};

std::vector<Content> contents() {
  std::string lines, array = "[";
  for (const char* text : {"the rank waits for it", "the layer sums the gradient", "a token is read"}) {
    const std::string object = std::string("{\"h\": 1e400, \"text\": \"") + text + "\"}";
    lines += object + "\n";
    array += (array == "[" ? "\n  " : ",\n  ") + object;
  }
  array += "\n]\n";
  return {{"lines.json", lines, ""},
          {"lines", lines, ""},
          {"lines.txt.gz", gzip(lines), ""},
          {"array.json", array, ""},
          {"table.csv", "id,text\n1,a b\n2,c d\n", "comma-separated"},
          {"settings", "[model]\nlayers = 3\n", "settings"},
          {"packed", std::string("\xFD\x37\x7A\x58\x5A\x00\x00", 7), "xz"}};
}

TEST(ContentCommands, GoByWhatIsInAFileAndNotByItsName) {
  const TinyTraining tiny;
  succeed(tiny.command({"--train-iters", "1", "--save", tiny.path("run"), "--peak-tflops", "1"}));
  const std::string tokenizer = tiny.path("tokenizer");
  write_golden_bert(tiny.path("bert"));
  write_file_atomically(tiny.path("test.jsonl"), "{\"text\": \"words of a test set that nobody has\"}\n");
  const std::string out = tiny.path("out.jsonl"), test = tiny.path("test.jsonl");
  const std::vector<Reader> readers = {
      {"tokenizer train", {"tokenizer", "train", "FILE", "--vocab-size", "257", "--out", tiny.path("t")}, ""},
      {"data tokenize", {"data", "tokenize", "FILE", "--tokenizer", tokenizer, "--out", tiny.path("o")}, "documents"},
      {"data clean", {"data", "clean", "FILE", "--tokenizer", tokenizer, "--min-tokens", "1", "--out", out}, "kept"},
      {"data langid", {"data", "langid", "FILE", "--out", out}, "documents"},
      {"data dedup", {"data", "dedup", "FILE", "--out", out}, "kept"},
      {"data decontaminate", {"data", "decontaminate", "FILE", "--evaluation", test, "--out", out}, "documents"},
      {"evaluation sets",
       {"data", "decontaminate", test, "--evaluation", "FILE", "--cut-ngram", "3", "--out", out},
       ""},
      {"data overlap", {"data", "overlap", "FILE", "--test", test, "--ngram", "2"}, "training_documents"},
      {"test sets", {"data", "overlap", test, "--test", "FILE", "--ngram", "2"}, "test_documents"},
      {"data extract",
       {"data", "extract", "FILE", "--field", "text", "--min-characters", "1", "--out", out},
       "documents"},
      {"data sample", {"data", "sample", "FILE", "--share", "1", "--out", out}, "documents"},
      {"eval lambada", {"eval", "lambada", "--load", tiny.path("run"), "--data", "FILE"}, "examples"},
      {"embed", {"embed", "FILE", "--load", tiny.path("bert"), "--out", tiny.path("v.npy")}, "texts"},
      {"generate", {"generate", "--load", tiny.path("run"), "--prompts", "FILE", "--max-new-tokens", "1"}, "lines"},
  };
  for (const Content& content : contents()) {
    write_file_atomically(tiny.path(content.name), content.bytes);
    for (const Reader& reader : readers) {
      if (!kHasTextTools && (reader.name == "data extract" || reader.name == "data langid")) continue;
      SCOPED_TRACE(reader.name + " of " + content.name);
      Words words = reader.words;
      std::ranges::replace(words, std::string("FILE"), tiny.path(content.name));
      if (std::ranges::find(words, "--out") != words.end()) words.emplace_back("--overwrite");
      const Outcome outcome = run_teratron(with(words, {"--json", "-"}));
      EXPECT_EQ(outcome.exit_code, content.refusal.empty() ? 0 : 2) << outcome.errors;
      if (!content.refusal.empty()) {
        EXPECT_THAT(outcome.errors, HasSubstr(content.refusal));
      } else if (reader.counts == "lines") {
        EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 3);
      } else if (!reader.counts.empty()) {
        EXPECT_EQ(Json::parse(outcome.output, nullptr, false)[reader.counts], 3) << outcome.output;
      }
      const bool is_told = outcome.errors.find("holds JSON lines, and is read as such") != std::string::npos;
      EXPECT_EQ(is_told, content.name.ends_with(".txt.gz")) << outcome.errors;
    }
  }
}

TEST(ContentCommands, WantAPlainTextForWikiTextAndTokensByPrefix) {
  const TinyTraining tiny;
  const std::string lines = tiny.path("wiki.tokens"), text = tiny.path("a.txt");
  write_file_atomically(lines, "{\"text\": \"a b\"}\n");
  write_file_atomically(text, "\xEF\xBB\xBF = A = \n");
  const Words wikitext = {"eval", "wikitext103", "--count-only", "--tokenizer", tiny.path("tokenizer"), "--data"};
  EXPECT_THAT(refused(with(wikitext, {lines})), HasSubstr("is to be the text of WikiText-103 as plain text"));
  EXPECT_EQ(json_of(with(wikitext, {lines, "--format", "text"}))["original_tokens"], 3);
  EXPECT_EQ(json_of(with(wikitext, {text}))["original_tokens"], 3);
  for (const Words& words :
       {Words{"data", "info", text}, Words{"train", "--model", "tiny", "--data-path", text, "--tokenizer",
                                           tiny.path("tokenizer"), "--train-iters", "1", "--seq-length", "8"}}) {
    EXPECT_THAT(refused(words), HasSubstr("is a file, and a tokenised corpus is needed")) << words[1];
  }
  EXPECT_THAT(refused({"data", "sample", text, "--share", "1", "--out", tiny.path("o")}), HasSubstr("plain text"));
  EXPECT_THAT(refused({"data", "merge", text, lines, "--out", tiny.path("o")}), HasSubstr("need no merging"));
}

}  // namespace
}  // namespace teratron::testing
