// Results that someone may have worked for are not replaced unasked.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class Overwriting : public TrainingCommands<> {
 protected:
  Overwriting() {
    std::string lines;
    for (int i = 0; i < 30; ++i) lines += "{\"text\": \"the rank waits " + std::to_string(i) + "\"}\n";
    write_file_atomically(path("a.jsonl"), lines);
  }
};

TEST_F(Overwriting, IsRefusedByEveryCommandUntilItIsAskedFor) {
  struct Case {
    Words words;
    std::string result;  // one of the files it writes
  };
  const std::string tokenizer = path("tokenizer"), text = path("corpus.txt"), lines = path("a.jsonl");
  const std::vector<Case> cases = {
      {{"tokenizer", "train", "--vocab-size", "270", text, "--out", path("tok")}, "tok/merges.txt"},
      {{"tokenizer", "encode", "--tokenizer", tokenizer, text, path("ids")}, "ids"},
      {{"tokenizer", "decode", "--tokenizer", tokenizer, path("ids"), path("back.txt")}, "back.txt"},
      {{"data", "tokenize", "--tokenizer", tokenizer, lines, "--out", path("c")}, "c.idx"},
      {{"data", "merge", path("c"), path("data"), "--out", path("both")}, "both.bin"},
      {{"data", "split", path("c"), "--parts", "a=1,b=1", "--out", path("part")}, "part-b.bin"},
      {{"data", "split", lines, "--parts", "a=1,b=1", "--out", path("part.jsonl")}, "part-b.jsonl"},
      {{"data", "sample", path("c"), "--documents", "3", "--out", path("some")}, "some.idx"},
      {{"data", "sample", lines, "--documents", "3", "--out", path("some.jsonl")}, "some.jsonl"},
      {{"data", "clean", lines, "--min-tokens", "0", "--no-url-rules", "--out", path("o.jsonl"), "--dropped",
        path("d.jsonl")},
       "d.jsonl"},
      {{"data", "dedup", lines, "--out", path("u.jsonl")}, "u.jsonl"}};
  for (const auto& [words, result] : cases) {
    succeed(words);
    write_file_atomically(path(result), "precious");
    EXPECT_THAT(refused(words), AllOf(HasSubstr("is there already"), HasSubstr("--overwrite"))) << words[1];
    EXPECT_EQ(read_file(path(result)), "precious") << words[1];
    succeed(with(words, {"--overwrite"}));
    EXPECT_NE(read_file(path(result)), "precious") << words[1];
  }
}

TEST_F(Overwriting, IsNoMatterWithDevicesAndStandardOutput) {
  for (int time = 0; time < 2; ++time) {
    succeed({"tokenizer", "encode", "--tokenizer", path("tokenizer"), path("corpus.txt"), "/dev/null"});
    succeed({"data", "dedup", path("a.jsonl"), "--out", "-"});
    succeed({"data", "info", path("data"), "--json", path("info.json")});
  }
}

TEST_F(Overwriting, PicturesAndTracesReplaceTheirKindAndMeasurementsNothing) {
  const Words simulate = {"simulate", "--stages", "2", "--micro-batches", "2"};
  const Words run = training_.command({"--train-iters", "1", "--lr-decay-style", "constant"});
  const Words profile = words_of(
      "profile --vocab-size 280 --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
      "--micro-batch-size 2");
  const std::string file = path("p");
  for (const Words& words : {with(simulate, {"--svg", file}), with(simulate, {"--trace", file}),
                             with(run, {"--trace", file}), Words{"plan", "--reproduce", "megatron", "--svg", file},
                             with(profile, {"--output", file}), Words{"profile", "--cluster", file}}) {
    write_file_atomically(file, "precious");
    EXPECT_THAT(refused(words), HasSubstr("is there already")) << words[0];
    EXPECT_EQ(read_file(file), "precious") << words[0];
  }
  std::filesystem::remove(file);
  for (int time = 0; time < 2; ++time) {
    succeed(with(simulate, {"--svg", file, "--trace", path("t")}));
    succeed(with(run, {"--trace", path("t")}));
  }
  const Outcome crossed = run_teratron(with(simulate, {"--trace", file}));
  EXPECT_THAT(crossed.errors, HasSubstr("is there already and is no trace of teratron"));
}

}  // namespace
}  // namespace teratron::testing
