// No command replaces what it reads, by any name, reads a pipe twice, or begins before it knows that it can write.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

const std::string kLines = "{\"text\": \"the rank waits for the gradient\"}\n{\"text\": \"a layer sums it up\"}\n";

class FilesOfCommand : public TrainingCommands<> {
 protected:
  FilesOfCommand() {
    for (const char* name : {"in.jsonl", "ev.jsonl", "folder/a.jsonl", "w-1.jsonl"}) {
      fs::create_directories(fs::path(path(name)).parent_path());
      write_file_atomically(path(name), kLines);
    }
    fs::create_symlink("in.jsonl", path("link.jsonl"));
    fs::create_symlink("in.jsonl", path("other.jsonl"));
  }
  // `words` with '@' before names in the folder.
  Words placed(Words words) const {
    for (std::string& word : words) {
      if (word.starts_with('@')) word = path(word.substr(1));
    }
    return words;
  }
};

TEST_F(FilesOfCommand, AreNeverReplacedWhereTheyAreRead) {
  struct Case {
    Words words;
    std::string kept;
  };
  std::vector<Case> cases = {
      {{"data", "clean", "--min-tokens", "0", "--dropped", "@in.jsonl", "--overwrite", "--out", "@o", "@in.jsonl"},
       "in.jsonl"},
      {{"data", "dedup", "--overwrite", "--out", "@in.jsonl", "@link.jsonl"}, "in.jsonl"},
      {{"data", "dedup", "--overwrite", "--out", "@other.jsonl", "@link.jsonl"}, "in.jsonl"},
      {{"data", "dedup", "--overwrite", "--out", "@folder/../folder/a.jsonl", "@folder"}, "folder/a.jsonl"},
      {{"data", "dedup", "--overwrite", "--out", "@w-1.jsonl", "@w-*.jsonl"}, "w-1.jsonl"},
      {{"data", "decontaminate", "--overwrite", "--out", "@ev.jsonl", "@in.jsonl", "--evaluation", "@ev.jsonl"},
       "ev.jsonl"},
      {{"data", "overlap", "--test", "@ev.jsonl", "--json", "@ev.jsonl", "--", "@in.jsonl"}, "ev.jsonl"},
      {{"data", "overlap", "--test", "@ev.jsonl", "--json", "@in.jsonl", "--", "@in.jsonl"}, "in.jsonl"},
      {{"data", "sample", "@in.jsonl", "--documents", "1", "--out", "@o.jsonl", "--json", "@in.jsonl"}, "in.jsonl"},
      {{"data", "sample", "@data", "--documents", "1", "--overwrite", "--out", "@data"}, "data.bin"},
      {{"data", "info", "@data", "--json", "@data.idx"}, "data.idx"},
      {{"data", "verify", "@data", "--json", "@data.teratron.json"}, "data.teratron.json"},
      {{"data", "verify", "@data", "--tokenizer", "@tokenizer", "--json", "@tokenizer/vocab.json"},
       "tokenizer/vocab.json"},
      {{"data", "tokenize", "--tokenizer", "@tokenizer", "--out", "@z", "--json", "@in.jsonl", "@in.jsonl"},
       "in.jsonl"},
      {{"tokenizer", "encode", "--tokenizer", "@tokenizer", "--overwrite", "@corpus.txt", "@corpus.txt"}, "corpus.txt"},
      {{"tokenizer", "decode", "--tokenizer", "@tokenizer", "--overwrite", "@data.bin", "@data.bin"}, "data.bin"},
      {{"tokenizer", "train", "--vocab-size", "270", "--overwrite", "--out", "@tokenizer", "@tokenizer/merges.txt"},
       "tokenizer/merges.txt"},
      {{"tokenizer", "train", "--vocab-size", "270", "--overwrite", "--out", "@tokenizer",
        "@tokenizer/tokenizer_config.json"},
       "tokenizer/tokenizer_config.json"},
      {{"embed", "--load", "@none", "--overwrite", "--out", "@data.bin", "@data.bin"}, "data.bin"},
      {{"generate", "--load", "@none", "--prompts", "@in.jsonl", "--json", "@in.jsonl"}, "in.jsonl"},
      {{"eval", "lambada", "--load", "@none", "--data", "@in.jsonl", "--json", "@in.jsonl"}, "in.jsonl"},
      {{"eval", "multiple-choice", "--load", "@none", "--data", "@in.jsonl", "--json", "@in.jsonl"}, "in.jsonl"},
      {training_.command({"--train-iters", "1", "--json", path("data.bin")}), "data.bin"},
      {training_.command({"--train-iters", "1", "--trace", path("data.idx")}), "data.idx"}};
  cases.push_back(
      {{"data", "clean", "--min-tokens", "0", "--overwrite", "--out", "@in.jsonl", "@in.jsonl"}, "in.jsonl"});
  for (const char* stage : {"dedup", "langid", "extract"}) {
    cases.push_back({{"data", stage, "--overwrite", "--out", "@in.jsonl", "@in.jsonl"}, "in.jsonl"});
  }
  for (const auto& [words, kept] : cases) {
    const std::string before = read_file(path(kept));
    EXPECT_THAT(refused(placed(words)), HasSubstr("read or written by this command already"))
        << ::testing::PrintToString(words);
    EXPECT_EQ(read_file(path(kept)), before) << ::testing::PrintToString(words);
  }
}

TEST_F(FilesOfCommand, AreNotReplacedByJsonWhereTheyHoldSomethingElse) {
  const Words info = {"data", "info", path("data"), "--json"};
  for (const std::string& kept : {std::string("words\n"), kLines, std::string("{\"a\": 1}, b"), std::string(1, '\0')}) {
    write_file_atomically(path("kept"), kept);
    EXPECT_THAT(refused(with(info, {path("kept")})), HasSubstr("something else than the JSON"));
    EXPECT_EQ(read_file(path("kept")), kept);
  }
  for (const std::string& replaced : {std::string(), std::string("{\"a\": [1]}\n"), std::string("\n")}) {
    write_file_atomically(path("kept"), replaced);
    succeed(with(info, {path("kept")}));
    EXPECT_THAT(read_file(path("kept")), HasSubstr("tokens"));
  }
}

// No input is there, so a command that had begun its work would name that.
TEST_F(FilesOfCommand, AreRefusedBeforeTheWorkWhereNoFileCanBe) {
  const Words simulate = {"simulate", "--stages", "2", "--micro-batches", "2"};
  const Words profile = {"profile", "--model", "tiny", "--vocab-size", "300"};
  const Words plan = {"plan", "--model", "124M", "--global-batch", "4", "--cluster", "dgx-a100", "--devices", "8"};
  const std::vector<Words> in_a_folder = {
      {"tokenizer", "encode", "--tokenizer", "@none", "@none"},
      {"tokenizer", "decode", "--tokenizer", "@none", "@none"},
      {"convert", "--from", "teratron", "--to", "gguf", "@none"},
      {"embed", "--load", "@none", "@in.jsonl", "--out"},
      {"eval", "mnli", "--load", "@none", "--data", "@none", "--predictions"},
      {"report", "@none", "--output"},
      {"generate", "--load", "@none", "--json"},
      {"train", "--data-path", "@none", "--tokenizer", "@none", "--model", "tiny", "--train-iters", "1", "--json"},
      {"plan", "--reproduce", "megatron", "--svg"},
      with(plan, {"--html"}),
      with(simulate, {"--svg"}),
      with(simulate, {"--trace"}),
      with(profile, {"--output"}),
      with(profile, {"--json"}),
      {"profile", "--cluster"}};
  const std::vector<Words> in_new_folders = {{"tokenizer", "train", "@none", "--vocab-size", "270", "--out"},
                                             {"data", "tokenize", "--tokenizer", "@none", "@none", "--out"},
                                             {"data", "chat", "--tokenizer", "@none", "@none", "--out"},
                                             {"data", "merge", "@none", "--out"},
                                             {"data", "split", "@none", "--parts", "a=1", "--out"},
                                             {"data", "sample", "@none", "--documents", "1", "--out"},
                                             {"data", "dedup", "@none", "--out"},
                                             {"data", "dedup", "@none", "--out", "-", "--dropped"},
                                             {"convert", "--from", "hf", "--to", "teratron", "@none"},
                                             {"checkpoint", "reshard", "@none"}};
  fs::create_symlink("loop", path("loop"));
  const auto expect_refused = [&](const Words& words, const std::string& place) {
    EXPECT_THAT(refused(with(placed(words), {path(place)})), HasSubstr("'" + path(place)))
        << ::testing::PrintToString(words);
  };
  for (const Words& words : in_a_folder) {
    for (const char* place : {"in.jsonl/x", "in.jsonl/x/y", "loop", "loop/x", "missing/x", "folder"}) {
      expect_refused(words, place);
    }
  }
  for (const Words& words : in_new_folders) {
    for (const char* place : {"in.jsonl/x", "in.jsonl/x/y", "loop/x"}) expect_refused(words, place);
  }
  for (const char* flag : {"--save", "--trace", "--tensorboard-dir"}) {
    const Words words = training_.command({"--train-iters", "1000000", "--peak-tflops", "1", flag});
    for (const char* place : {"in.jsonl/x", "in.jsonl/x/y", "loop", "loop/x"}) {
      EXPECT_THAT(refused(with(words, {path(place)})), HasSubstr(path(place))) << flag;
    }
  }
  EXPECT_FALSE(fs::exists(path("missing")));
}

TEST_F(FilesOfCommand, AreReadOnceWhereTheyArePipes) {
  for (const char* input : {"-", "/dev/stdin", "/dev/fd/0"}) {
    const std::vector<Words> cases = {
        {"data", "overlap", "--test", "-", "--", input},
        {"data", "decontaminate", "--evaluation", input, "--out", path("o"), "--", "-"},
        {"data", "dedup", "--out", path("o"), input, "-"},
        {"score", "squad1", "--data", "-", "--predictions", input},
    };
    for (const Words& words : cases) {
      std::string line = std::string("printf 'a\\n' | ") + TERATRON_BINARY;
      for (const std::string& word : words) line += " " + word;
      const Outcome refused = ChildProgram({"/bin/sh", "-c", line}, {}, "").wait();
      EXPECT_EQ(refused.exit_code, 2) << line;
      EXPECT_THAT(refused.errors, HasSubstr("standard input (-) is named twice")) << line;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
