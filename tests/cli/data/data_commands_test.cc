// Data as people have it, through the binary: pipes, compressed files, corpora that know their tokenizer.

#include <algorithm>

#include "cli/tiny_training.h"
#include "tokenizer/tokenizer.h"

namespace teratron::testing {
namespace {

class DataCommands : public ::testing::Test {
 protected:
  static std::string path(const std::string& name) { return training().path(name); }
  static Outcome shell(const std::string& line) {
    return ChildProgram({"sh", "-c", "set -e; cd " + path("") + "; t=" + TERATRON_BINARY + "; " + line}).wait();
  }
  static void expect_refused(const Words& words, const std::vector<std::string>& parts) {
    const std::string errors = refused(words);
    EXPECT_THAT(errors, StartsWith("error: "));
    for (const std::string& part : parts) EXPECT_THAT(errors, HasSubstr(part));
  }
  static Words small_run(const Words& more) {
    return training().command(with({"--num-layers", "1", "--hidden-size", "16", "--seq-length", "8"}, more));
  }
  // Another tokenizer of the same size, so that its ids are valid ids; and a model of one iteration.
  static const TinyTraining& training() {
    static const std::unique_ptr<TinyTraining> made = [] {
      auto tiny = std::make_unique<TinyTraining>(1000);
      write_file_atomically(tiny->path("other.txt"),
                            "quite other words, quite other merges, quite other ids, words, ids");
      succeed({"tokenizer", "train", "--vocab-size", "265", "--out", tiny->path("other"), tiny->path("other.txt")});
      succeed(tiny->command({"--num-layers", "1", "--hidden-size", "16", "--seq-length", "8", "--train-iters", "1",
                             "--save", tiny->path("run")}));
      return tiny;
    }();
    return *made;
  }
};

TEST_F(DataCommands, AVocabularyIsLearnedFromTheDocumentsThatAreTokenised) {
  RandomSequence random(RandomStream{.seed = 6});
  const Words pieces = {"ab", "ba", " ab", "\n", "a", "\u00e9", " \"b\"", "\\"};
  Words texts;
  std::string lines;
  for (int document = 0; document < 40; ++document) {
    std::string text;
    for (std::uint64_t left = random.below(30); left > 0; --left) text += pieces[random.below(pieces.size())];
    texts.push_back(path("learn-" + std::to_string(document) + ".txt"));
    write_file_atomically(texts.back(), text);
    lines += Json{{"id", document}, {"content", text}}.dump() + "\n\n";
  }
  write_file_atomically(path("learn.jsonl"), lines);
  const Words train = {"tokenizer", "train", "--vocab-size", "290", "--out"};
  succeed(with(with(train, {path("from-texts")}), texts));
  const std::string expected = read_file(path("from-texts/tokenizer.json"));
  for (const std::string line :
       {"$t tokenizer train --vocab-size 290 --json-key content --out learned learn.jsonl",
        "gzip -kf learn.jsonl; $t tokenizer train --vocab-size 290 --json-key content --out learned learn.jsonl.gz",
        "$t tokenizer train --vocab-size 290 --json-key content --out learned - < learn.jsonl",
        "cp learn.jsonl lines; $t tokenizer train --vocab-size 290 --format jsonl --json-key content --out learned "
        "lines"}) {
    const Outcome outcome = shell(line);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(read_file(path("learned/tokenizer.json")), expected) << line;
    fs::remove_all(path("learned"));
  }
  expect_refused(with(train, {path("none"), path("learn.jsonl")}), {"learn.jsonl:1: ", "--json-key", "content"});
  write_file_atomically(path("cut.jsonl"), lines.substr(0, lines.size() - 5));
  expect_refused(with(train, {path("none"), "--json-key", "content", path("cut.jsonl")}), {"cut.jsonl:79: "});
  write_file_atomically(path("blank.jsonl"), "\n\n");
  expect_refused(with(train, {path("none"), path("blank.jsonl")}), {"no text"});
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(DataCommands, PipesAndFilesMakeTheSame) {
  const Outcome outcome = shell(
      "gzip -c corpus.txt | $t tokenizer encode --tokenizer tokenizer - - >ids 2>said;"
      "$t tokenizer encode --tokenizer tokenizer corpus.txt ids2 >/dev/null; cmp ids ids2; grep -q tokens said;"
      "cat ids | $t tokenizer decode --tokenizer tokenizer - - 2>/dev/null | cmp - corpus.txt;"
      "gzip -c corpus.txt | $t tokenizer train --vocab-size 280 --out piped - >/dev/null;"
      "cmp piped/tokenizer.json tokenizer/tokenizer.json;"
      "gzip -c corpus.txt | $t data tokenize --tokenizer tokenizer --out piped/data - >/dev/null;"
      "cmp piped/data.bin data.bin; cmp piped/data.idx data.idx;"
      "gzip -c corpus.txt | $t eval wikitext103 --count-only --tokenizer tokenizer --data - --json - 2>/dev/null "
      ">piped/a;"
      "$t eval wikitext103 --count-only --tokenizer tokenizer --data corpus.txt --json - 2>/dev/null | cmp - piped/a;"
      "$t simulate --stages 2 --micro-batches 2 --svg - 2>/dev/null | head -c 4");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "<svg");
}

TEST_F(DataCommands, SentencesAreForBertAlone) {
  write_file_atomically(path("two.txt"), "Dr. A came. He left.\nAnd\n\nthat is all");
  write_file_atomically(path("one.txt"), "One sentence alone.");
  const Outcome split = must({"data", "tokenize", "--split-sentences", "--tokenizer", path("tokenizer"), "--out",
                              path("split"), path("two.txt"), path("one.txt")});
  EXPECT_THAT(split.output, HasSubstr("5 sentences; documents of a single one, which give BERT no pair: 1"));
  const Outcome info = run_teratron({"data", "info", path("split"), "--json", "-"});
  EXPECT_THAT(info.output, HasSubstr("\"sequences\":5,\"sequences_are_sentences\":true,"
                                     "\"documents_of_two_sequences\":1"));
  Words train = small_run({"--train-iters", "1"});
  std::ranges::replace(train, path("data"), path("split"));
  expect_refused(train, {"split into sentences", "without --split-sentences"});
  expect_refused({"eval", "loss", "--load", path("run"), "--data-path", path("split")}, {"split into sentences"});
}

TEST_F(DataCommands, TwoResultsOnStandardOutputAreRefused) {
  const std::string tokenizer = path("tokenizer"), corpus = path("corpus.txt");
  expect_refused({"tokenizer", "encode", "--tokenizer", tokenizer, corpus, "-", "--json", "-"},
                 {"OUT and --json both"});
  expect_refused({"data", "tokenize", "--tokenizer", tokenizer, corpus, "--out", "-"}, {"--out is two files"});
}

TEST_F(DataCommands, NumbersThatWouldOverflowAreRefused) {
  const std::string tokenizer = path("tokenizer"), corpus = path("corpus.txt"), out = path("none");
  const Words train = {"tokenizer", "train", "--vocab-size", "300", "--out", out, corpus},
              chat = {"data", "chat", "--tokenizer", tokenizer, corpus};
  for (const Words& words :
       {train, Words{"tokenizer", "encode", "--tokenizer", tokenizer, corpus, out},
        Words{"data", "tokenize", "--tokenizer", tokenizer, corpus, "--out", out}, with(chat, {"--out", out}),
        Words{"data", "overlap", "--test", corpus, corpus}, Words{"data", "clean", "--out", out, corpus}}) {
    for (const char* threads : {"4294967297", "4097"}) {
      expect_refused(with(words, {"--threads", threads}), {std::string("--threads is ") + threads, "4096"});
    }
  }
  expect_refused(with(chat, {"--show", "4611686018427387904"}), {"--show is 4611686018427387904"});
  expect_refused({"tokenizer", "train", "--vocab-size", "300", "--out", "-", corpus}, {"--out is -, standard output"});
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(DataCommands, AnotherTokenizerIsRefusedByTrainAndEval) {
  const std::string both = Tokenizer::load(path("tokenizer")).hash(), other = Tokenizer::load(path("other")).hash();
  expect_refused(small_run({"--tokenizer", path("other"), "--train-iters", "1"}), {both, other, path("tokenizer")});
  expect_refused({"eval", "loss", "--load", path("run"), "--data-path", path("data"), "--tokenizer", path("other")},
                 {both, other});
  // The checkpoint's own tokenizer, where none is named.
  succeed({"data", "tokenize", "--tokenizer", path("other"), "--out", path("strange"), path("corpus.txt")});
  expect_refused({"eval", "loss", "--load", path("run"), "--data-path", path("strange")}, {both, other});
  const std::string size = std::to_string(Tokenizer::load(path("tokenizer")).vocab_size());
  const Words go_on =
      with(words_of("train --num-layers 1 --hidden-size 16 --num-attention-heads 4 --seq-length 8 --train-iters 2"),
           {"--data-path", path("strange"), "--load", path("run"), "--vocab-size", size});
  expect_refused(go_on, {both, other});
  // Without a sidecar nobody knows, and it is taken.
  fs::remove(path("strange.teratron.json"));
  succeed({"eval", "loss", "--load", path("run"), "--data-path", path("strange")});
}

TEST_F(DataCommands, VerifyFindsDamageAndInfoNamesTheTokenizer) {
  succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("v"), path("corpus.txt")});
  EXPECT_EQ(json_of({"data", "info", path("v")}).at("tokenizer").at("hash"), Tokenizer::load(path("tokenizer")).hash());
  const Json found = json_of({"data", "verify", path("v"), "--tokenizer", path("tokenizer")});
  EXPECT_TRUE(found.at("intact").get<bool>());
  EXPECT_TRUE(found.at("has_checksums").get<bool>());
  expect_refused({"data", "verify", path("v"), "--tokenizer", path("other")}, {"was made with the tokenizer"});
  std::string bin = read_file(path("v.bin"));
  bin[bin.size() / 2] ^= 1;
  write_file_atomically(path("v.bin"), bin);
  const Outcome outcome = run_teratron({"data", "verify", path("v"), "--json", "-"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr("v.bin': its checksum")));
  EXPECT_FALSE(Json::parse(outcome.output).at("intact").get<bool>());
  fs::remove(path("v.teratron.json"));
  EXPECT_FALSE(json_of({"data", "verify", path("v")}).at("has_checksums").get<bool>());
  EXPECT_TRUE(json_of({"data", "info", path("v")}).at("tokenizer").is_null());
}

TEST_F(DataCommands, ConvertChecksTheTokenizerItCopiesAndOverwritesNothing) {
  const Words there = {"convert", "--from", "teratron", "--to", "hf"},
              back = {"convert", "--from", "hf", "--to", "teratron"};
  succeed(with(there, {path("run"), path("hf")}));
  const std::string weights = read_file(path("hf/model.safetensors"));
  expect_refused(with(there, {path("run"), path("hf")}), {"hf' is not empty", "nothing is overwritten"});
  EXPECT_EQ(read_file(path("hf/model.safetensors")), weights);
  succeed(with(back, {path("hf"), path("back")}));
  // One that cannot be used, and one of another size.
  Json tokenizer = Json::parse(read_file(path("hf/tokenizer.json")));
  tokenizer["normalizer"] = {{"type", "NFKC"}};
  write_file_atomically(path("hf/tokenizer.json"), tokenizer.dump());
  expect_refused(with(back, {path("hf"), path("back2")}), {"its normalizer is 'NFKC'", "the weights alone"});
  tokenizer["normalizer"] = nullptr;
  tokenizer["added_tokens"].push_back({{"id", 280}, {"content", "<pad>"}});
  write_file_atomically(path("hf/tokenizer.json"), tokenizer.dump());
  expect_refused(with(back, {path("hf"), path("back2")}), {"has 281 tokens, and the model 280"});
  EXPECT_FALSE(fs::exists(path("back2")));
  write_file_atomically(path("back/iter_0000000/tokenizer.json"), tokenizer.dump());
  expect_refused(with(there, {path("back"), path("hf2")}), {"has 281 tokens, and the model 280"});
  fs::remove(path("hf/tokenizer.json"));
  fs::remove(path("hf/vocab.json"));
  succeed(with(back, {path("hf"), path("back2")}));
}

}  // namespace
}  // namespace teratron::testing
