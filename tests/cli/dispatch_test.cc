// The binary's manners: help, unknown words, exit codes, and which stream says what.

#include <algorithm>

#include "base/lines.h"
#include "base/version.h"
#include "cli/binary.h"
#include "cli/registry.h"

namespace teratron::testing {
namespace {

TEST(Binary, HelpListsEveryCommandAndGoesToStandardOutput) {
  const Outcome outcome = must({"--help"});
  EXPECT_THAT(outcome.errors, IsEmpty());
  std::size_t at = 0;
  for (const std::string& command : registered_commands()) {
    const std::size_t found = outcome.output.find("\n  " + command + " ");
    ASSERT_NE(found, std::string::npos) << command;
    EXPECT_GT(found, at) << command << " stands before the one that the registry has before it";
    at = found;
  }
}

TEST(Binary, HelpFitsEightyColumnsAndNamesItsGroups) {
  std::vector<Words> helps = {{"--help"}, {"data", "--help"}};
  for (const std::string& command : registered_commands()) helps.push_back(with(words_of(command), {"--help"}));
  for (const Words& words : helps) {
    for (const std::string& line : lines_of(succeed(words))) EXPECT_LE(line.size(), 80U) << line;
  }
  const std::string help = succeed({"--help"});
  for (const char* group :
       {"Training:\n  train ", "Evaluation:\n  eval loss ", "Use:\n  generate ", "data:\n  tokenizer train ",
        "Checkpoints:\n  checkpoint info ", "Planning:\n  profile ", "This program:\n  flags "}) {
    EXPECT_THAT(help, HasSubstr(group));
  }
}

TEST(Binary, EveryCommandExplainsItselfAndTakesJson) {
  const std::vector<std::string> printers = {"completion", "man"};  // their output is for other programs
  for (const std::string& command : registered_commands()) {
    const Outcome outcome = run_teratron(with(words_of(command), {"--help"}));
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.errors, IsEmpty()) << command;
    EXPECT_THAT(outcome.output, HasSubstr("usage: teratron " + command)) << command;
    const bool takes_json = std::ranges::find(printers, command) == printers.end();
    EXPECT_EQ(outcome.output.find("--json ") != std::string::npos, takes_json) << command;
  }
}

TEST(Binary, HelpOfACommandIsItsOwn) {
  for (const Words& words : {Words{"train"}, Words{"data", "tokenize"}, Words{"tokenizer"}}) {
    const std::string own = succeed(with(words, {"--help"}));
    EXPECT_EQ(succeed(with({"help"}, words)), own);
    EXPECT_EQ(succeed(with({"--help"}, words)), own);
  }
  EXPECT_EQ(succeed({"help", "help"}), succeed({"help"}));
}

TEST(Binary, ColorIsAFlagBeforeACommandAndBesideHelp) {
  const std::string plain = succeed({"--help"});
  EXPECT_THAT(plain, Not(HasSubstr("\x1b[")));
  for (const Words& words : {Words{"--color", "always", "--help"}, Words{"--help", "--color=always"},
                             Words{"train", "--help", "--color", "always"}, Words{"--color=always", "help", "train"}}) {
    EXPECT_THAT(succeed(words), HasSubstr("\x1b["));
  }
  EXPECT_EQ(succeed({"--help", "--color", "never"}), plain);
  EXPECT_EQ(succeed({"--color", "auto", "--version"}), succeed({"--version"}));
  for (const auto& [words, message] : std::vector<std::pair<Words, std::string>>{
           {{"--help", "--color", "blue"}, "--color is 'blue'; there are: auto, always, never"},
           {{"--help", "--color="}, "--color is ''; there are: auto, always, never"},
           {{"--color"}, "--color needs a value"},
           {{"data", "info", "x", "--color", "never"}, "unknown flag '--color'"}}) {
    const Outcome outcome = run_teratron(words);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.errors, StartsWith("error: " + message));
  }
}

TEST(Binary, ItsVersionIsThatOfTheBuild) {
  const Outcome outcome = must({"--version"});
  EXPECT_EQ(outcome.output, "teratron " + std::string(kVersion) + "\n");
}

TEST(Binary, UnknownWordsAreTheUsersFaultAndTheNearestCommandIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no command; teratron --help lists them"},
      {{"trian"}, "unknown command 'trian'; did you mean 'train'?"},
      {{"tokeniser", "encode"}, "unknown command 'tokeniser'; did you mean 'tokenizer'?"},
      {{"tokenizer", "encod"}, "unknown command 'tokenizer encod'; did you mean 'tokenizer encode'?"},
      {{"data"}, "'teratron data' needs one more word; there are: data extract, data clean"},
      {{"zebra"}, "unknown command 'zebra'; teratron --help lists the commands"},
      {{"tokenize"}, "unknown command 'tokenize'; did you mean 'data tokenize'?"},
      {{"decontaminte"}, "unknown command 'decontaminte'; did you mean 'data decontaminate'?"},
      {{"help", "trian"}, "unknown command 'trian'; did you mean 'train'?"},
      {{"completion", "tcsh"}, "shell is 'tcsh'; there are: bash, fish, zsh"},
      {{"data", "info", "x", "--jsn", "y"}, "unknown flag '--jsn'; did you mean '--json'?"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = run_teratron(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.output, IsEmpty());
    EXPECT_THAT(outcome.errors, StartsWith("error: " + message));
  }
}

TEST(Binary, EveryCommandWithoutItsArgumentsSaysWhatIsMissing) {
  int tried = 0;
  for (const std::string& command : registered_commands()) {
    const std::string usage = "\nusage: teratron " + command + " ", help = succeed(with(words_of(command), {"--help"}));
    const std::size_t begin = help.find(usage);
    if (begin == std::string::npos || help[begin + usage.size()] == '[') continue;  // it needs none
    ++tried;
    const Outcome outcome = run_teratron(words_of(command));
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr("is missing"))) << command;
    EXPECT_THAT(outcome.output, IsEmpty()) << command;
  }
  EXPECT_GT(tried, 30);
}

TEST(Binary, TrainTellsAllFaultsOfItsConfigurationAtOnce) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a.toml").string();
  write_file_atomically(file, "hidden_size = 1000\nnum_attention_heads = 16\nsplitt = '1'\n");
  EXPECT_THAT(refused({"train", "--config", file, "--lr", "high"}),
              AllOf(StartsWith("error: 5 faults:\n"), HasSubstr("'splitt' (" + file + ":3)"),
                    HasSubstr("nearest that are: 992, 1008"), HasSubstr("--lr is 'high'"),
                    HasSubstr("--data-path PREFIX is missing"), HasSubstr("--train-iters is 0")));
}

TEST(Binary, OutputThatCannotBeWrittenIsTheEnvironmentsFault) {
  const Outcome outcome = run_teratron({"--help"}, "/dev/full");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("cannot write to standard output"));
}

TEST(Binary, WritesItsJsonAlthoughStandardOutputIsFull) {
  const TemporaryFolder folder;
  const fs::path json = folder / "results.json";
  EXPECT_EQ(run_teratron({"simulate", "--stages", "2", "--json", json}, "/dev/full").exit_code, 3);
  EXPECT_TRUE(fs::exists(json));
}

TEST(Binary, AnInputThatIsALoopOfLinksIsTheUsersFault) {
  const TemporaryFolder folder;
  const std::string loop = folder / "loop";
  fs::create_symlink(loop, loop);
  for (const Words& words : {Words{"tokenizer", "train", loop, "--vocab-size", "300", "--out", folder / "tokenizer"},
                             Words{"report", loop}, Words{"top", loop}, Words{"data", "info", loop},
                             Words{"plan", "--model", "124M", "--global-batch", "4", "--cluster", loop},
                             Words{"convert", loop, folder / "out", "--from", "hf", "--to", "teratron"}}) {
    EXPECT_THAT(refused(words), HasSubstr(loop)) << words.front();
  }
}

}  // namespace
}  // namespace teratron::testing
