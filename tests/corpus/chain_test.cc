// The stages that users can name: their flags, and the chains that are made of them.
#include "corpus/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "options/reading.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Options {
  StageChain chain;
  Faults faults() const { return chain.faults(); }
};

FieldList fields_of(Options& options) {
  FieldList list;
  options.chain.add_then_field(list);
  options.chain.add_stage_fields(list);
  return list;
}

Options read(const StageText& first, const std::vector<std::string>& arguments) {
  return read_options(arguments, Options{.chain = StageChain(first)});
}

// Why a chain is refused; empty: it is not.
std::string refusal(const StageText& first, const std::vector<std::string>& arguments) {
  return message_of<UserError>([&] { read(first, arguments); });
}

StageText stage_named(std::string_view name) {
  for (const StageText& stage : all_stages()) {
    if (stage.name == name) return stage;
  }
  throw std::runtime_error("no such stage");
}

class Chains : public ::testing::Test {
 protected:
  // The flags that a stage needs to be made.
  std::vector<std::string> enough(std::string_view stage) {
    if (stage == "clean") return {"--min-tokens", "0", "--no-url-rules"};
    if (stage != "decontaminate") return {};
    write_file_atomically(folder_.path() / "test.jsonl", R"({"text": "one two three four five six seven eight nine"})"
                                                         "\n");
    return {"--evaluation", folder_.path() / "test.jsonl"};
  }
  const TemporaryFolder folder_;
};

TEST_F(Chains, EveryStageIsMadeByItsNameAndHasFlagsOfItsOwn) {
  std::set<std::string_view> names;
  for (const StageText& stage : all_stages()) {
    EXPECT_TRUE(names.insert(stage.name).second) << stage.name;
    EXPECT_FALSE(stage.summary.empty() || stage.doing.empty()) << stage.name;
    Options options = read(stage, enough(stage.name));
    const auto made = options.chain.make({.out = folder_.path() / "out.jsonl"});
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made.front()->name(), stage.name);
    const std::string group = "Stage " + std::string(stage.name);
    std::set<std::string> flags;
    int own = 0;
    for (const Field& field : fields_of(options)) {
      EXPECT_TRUE(flags.insert(field.name).second) << field.name;
      own += field.group == group ? 1 : 0;
    }
    EXPECT_GT(own, 0) << stage.name;
  }
}

TEST_F(Chains, StagesFollowInTheOrderInWhichTheyAreNamed) {
  std::vector<std::string> arguments = enough("clean");
  for (const char* const word : {"--then", "dedup,langid", "clean"}) arguments.emplace_back(word);
  std::vector<std::string> names;
  for (const auto& stage : read(stage_named("extract"), arguments).chain.make({.out = folder_.path() / "out.jsonl"})) {
    names.emplace_back(stage->name());
  }
  EXPECT_THAT(names, ElementsAre("extract", "dedup", "langid", "clean"));
}

TEST_F(Chains, RefuseCommandsThatMakeNoChain) {
  const StageText dedup = stage_named("dedup");
  const std::string unknown = refusal(dedup, {"--then", "polish"});
  EXPECT_THAT(unknown, HasSubstr("there is no stage 'polish'; there are: "));
  for (const StageText& stage : all_stages()) EXPECT_THAT(unknown, HasSubstr(std::string(stage.name)));
  EXPECT_THAT(refusal(dedup, {"--then", "langid,dedup"}), HasSubstr("dedup is named twice"));
  EXPECT_THAT(refusal(dedup, {"--then", "extract"}), HasSubstr("extract reads pages, so it can only be the first"));
}

TEST_F(Chains, StagesAskForWhatTheyNeedWhereTheyRun) {
  const StageText dedup = stage_named("dedup");
  EXPECT_EQ(refusal(dedup, {}), kNoError);
  EXPECT_THAT(refusal(dedup, {"--then", "decontaminate"}), HasSubstr("--evaluation"));
  EXPECT_THAT(refusal(dedup, {"--then", "clean"}), HasSubstr("--tokenizer"));
  EXPECT_EQ(refusal(dedup, {"--then", "clean", "--min-tokens", "0"}), kNoError);
  EXPECT_THAT(refusal(stage_named("langid"), {"--jaccard", "0.1"}), HasSubstr("--jaccard is a share, from 0.3"));
}

TEST_F(Chains, RefuseFlagsOfStagesThatDoNotRun) {
  const StageText dedup = stage_named("dedup");
  EXPECT_THAT(refusal(dedup, {"--evaluation", "a"}),
              HasSubstr("--evaluation is of decontaminate, which does not run; add --then decontaminate"));
  EXPECT_EQ(refusal(dedup, {"--evaluation", "a", "--then", "decontaminate"}), kNoError);
  EXPECT_THAT(refusal(dedup, {"--no-url-rules"}), HasSubstr("add --then clean"));
  EXPECT_EQ(refusal(dedup, {"--jaccard", "0.8"}), kNoError);
  EXPECT_THAT(refusal(dedup, {"--min-characters", "9"}), HasSubstr("is of extract, which does not run; leave it out"));
}

TEST_F(Chains, KnowTheFilesThatTheirStagesRead) {
  EXPECT_THAT(read(stage_named("langid"), {}).chain.files_read(), IsEmpty());
  EXPECT_THAT(read(stage_named("langid"),
                   {"--evaluation", "a", "b", "--tokenizer", "t", "--url-lists", "u", "--then", "clean,decontaminate"})
                  .chain.files_read(),
              ElementsAre("a", "b", "t", "u"));
}

}  // namespace
}  // namespace teratron::testing
