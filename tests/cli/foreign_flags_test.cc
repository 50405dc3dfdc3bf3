// Hints for users of other programs name existing flags.
#include "options/foreign_flags.h"

#include <algorithm>
#include <set>

#include "cli/binary.h"

namespace teratron::testing {
namespace {

// The flags of all commands, by the word after which they stand in the manual page.
std::set<std::string> all_flags() {
  std::set<std::string> flags;
  for (const char* command : {"train", "generate", "eval loss", "data tokenize"}) {
    for (std::string word : words_of(succeed(with(words_of(command), {"--help"})))) {
      if (!word.starts_with("--")) continue;
      while (word.ends_with(',')) word.pop_back();
      flags.insert(word.substr(2));
    }
  }
  return flags;
}

TEST(ForeignFlagsOfTheProgram, AreOursUnderOtherNames) {
  const std::set<std::string> ours = all_flags();
  const std::string train = succeed({"train", "--help"});
  for (const ForeignFlag& flag : foreign_flags()) {
    for (const std::string& name : our_flags(flag)) {
      EXPECT_TRUE(ours.contains(name)) << name_of(flag.program) << "'s " << flag.name << " is --" << name;
    }
    // A flag that train has is read, so that its hint would never be seen.
    if (flag.name.size() > 1) {
      EXPECT_THAT(train, Not(HasSubstr("--" + std::string(flag.name) + " ")));
    }
  }
}

TEST(ForeignFlagsOfTheProgram, AreTheTableOfThePageForThoseWhoComeFromElsewhere) {
  const std::string table = succeed({"flags"});
  EXPECT_EQ(std::ranges::count(table, '\n'), std::ssize(foreign_flags()) + 2);
  EXPECT_THAT(table, AllOf(HasSubstr("| Megatron-LM  | --train-samples "), HasSubstr("| nanoGPT "),
                           HasSubstr("| --per_device_train_batch_size "), HasSubstr("| llm.c        | -i ")));
  const std::string page = read_file(std::filesystem::path(TERATRON_SOURCE_DIR) / "docs" / "guide" / "coming-from.md");
  EXPECT_THAT(page, HasSubstr("<!-- teratron flags -->\n" + table)) << "write there what `teratron flags` prints";
}

TEST(ForeignFlagsOfTheProgram, AreJsonForScripts) {
  const Json flags = json_of({"flags"}).at("flags");
  EXPECT_EQ(flags.size(), foreign_flags().size());
  for (const Json& flag : flags) {
    if (flag.at("its_flag") != Json("-i")) continue;
    EXPECT_EQ(flag.at("program"), Json("llm.c"));
    EXPECT_EQ(flag.at("here"), Json("--data-path PREFIX"));
  }
}

TEST(ForeignFlagsOfTheProgram, AreExplainedWhereTheyAreTyped) {
  for (const auto& [words, hint] :
       std::vector<std::pair<Words, std::string>>{{{"--batch-size", "8"}, "--micro-batch-size N here"},
                                                  {{"--learning-rate", "1e-4"}, "--lr X here"},
                                                  {{"--max-steps", "7"}, "--train-iters N here"},
                                                  {{"--context-parallel-size", "2"}, "not split over ranks here"},
                                                  {{"--model", "gpt2"}, "is 124M here"},
                                                  {{"--model", "gpt2-medium"}, "is 355M here"}}) {
    EXPECT_THAT(refused(with({"train"}, words)), HasSubstr(hint));
  }
}

}  // namespace
}  // namespace teratron::testing
