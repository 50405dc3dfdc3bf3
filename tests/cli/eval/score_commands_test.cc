// teratron score mnli, qqp and race, end to end on planted files: what they print, and how they refuse.

#include <algorithm>

#include "checkpoint/damage.h"
#include "cli/binary.h"

namespace teratron::testing {
namespace {

class ScoreCommands : public ::testing::Test {
 protected:
  Words command(const std::string& task, const std::string& data, const std::string& predictions) {
    put_file(folder_ / "data.jsonl", data);
    put_file(folder_ / "predictions", predictions);
    return {"score", task, "--data", folder_ / "data.jsonl", "--predictions", folder_ / "predictions"};
  }
  TemporaryFolder folder_;
};

const std::string kPairs = "question1\tquestion2\tis_duplicate\na\tb\t1\nc\td\t0\ne\tf\t1\ng\th\n";
const std::string kArticle =
    R"({"id": "high1.txt", "article": "It rained.", "questions": ["It _ .", "Was it?"], "answers": ["A", "C"],)"
    R"( "options": [["a", "b", "c", "d"], ["e", "f", "g", "h"]]})";

TEST_F(ScoreCommands, SayTheScoresAndWhatTheyLeaveOut) {
  const Words qqp = command("qqp", kPairs, "index\tprediction\n0\t1\n1\t1\n");
  EXPECT_THAT(succeed(qqp),
              AllOf(HasSubstr("3 pairs   accuracy 33.3333   F1 50.0000"), HasSubstr("1 pair without a prediction"),
                    HasSubstr("1 row left out, because they have a wrong number of columns")));
  const auto of_qqp = json_of(qqp);
  EXPECT_DOUBLE_EQ(of_qqp["accuracy"], 100.0 / 3);
  EXPECT_DOUBLE_EQ(of_qqp["f1"], 50);
  EXPECT_EQ(of_qqp["skipped"]["wrong_columns"], 1);
  const Words mnli = command("mnli", "neutral\ta\tb\n-\tc\td\nentailment\te\tf\n", "index\tprediction\n0\tneutral\n");
  EXPECT_THAT(succeed(mnli), AllOf(HasSubstr("2 pairs   accuracy 50.0000\n"),
                                   HasSubstr("1 row left out, because their annotators did not agree"),
                                   HasSubstr("no pair is labelled contradiction\n")));
  EXPECT_DOUBLE_EQ(json_of(mnli)["accuracy"], 50);
  EXPECT_FALSE(json_of(mnli).contains("f1"));
  const Words race = command("race", kArticle, R"({"high1.txt": ["A", "D"]})");
  EXPECT_THAT(succeed(race), HasSubstr("RACE-H (high)         2 questions   accuracy  50.0\n"));
  const auto of_race = json_of(race);
  EXPECT_DOUBLE_EQ(of_race["accuracy"], 50);
  EXPECT_DOUBLE_EQ(of_race["all"]["accuracy"], 50);
  EXPECT_DOUBLE_EQ(of_race["high"]["accuracy"], 50);
  EXPECT_EQ(of_race["middle"]["questions"], 0);
}

TEST_F(ScoreCommands, OfSimilaritiesTakeTheNameOfTheirColumn) {
  Words embed = command("embed", "{\"a\": 1, \"score\": 2}\n{\"a\": 2, \"score\": 4}\n",
                        "{\"index\": 0, \"number\": 0.1}\n{\"index\": 1, \"number\": 0.9}\n");
  embed.insert(embed.end(), {"--label-column", "score"});
  EXPECT_THAT(succeed(embed), HasSubstr("2 examples   spearman 100"));
}

TEST_F(ScoreCommands, RaceTakesSeveralFiles) {
  std::string other = kArticle;
  other.replace(other.find("high1"), 5, "middle1");
  put_file(folder_ / "other.jsonl", other);
  Words words = command("race", kArticle, R"({"high1.txt": ["A", "C"], "middle1.txt": ["B", "C"]})");
  words.insert(words.begin() + 4, folder_ / "other.jsonl");
  const auto json = json_of(words);
  EXPECT_DOUBLE_EQ(json["middle"]["accuracy"], 50);
  EXPECT_DOUBLE_EQ(json["high"]["accuracy"], 100);
  EXPECT_DOUBLE_EQ(json["all"]["accuracy"], 75);
}

// As eval takes them: rows are counted through all files.
TEST_F(ScoreCommands, OfPairsAndQuestionsTakeSeveralFilesToo) {
  put_file(folder_ / "more.tsv", "question1\tquestion2\tis_duplicate\ni\tj\t0\n");
  Words qqp = command("qqp", kPairs, "index\tprediction\n0\t1\n1\t0\n2\t1\n4\t1\n");
  qqp.insert(qqp.begin() + 4, folder_ / "more.tsv");
  EXPECT_DOUBLE_EQ(json_of(qqp)["accuracy"], 75);
  const auto question = [](const std::string& id) {
    return R"({"data": [{"paragraphs": [{"context": "It rained.", "qas": [{"id": ")" + id +
           R"(", "question": "Did it?", "answers": [{"text": "rained"}]}]}]}]})";
  };
  put_file(folder_ / "more.json", question("b"));
  Words squad = command("squad1", question("a"), R"({"a": "rained", "b": "snowed"})");
  squad.insert(squad.begin() + 4, folder_ / "more.json");
  EXPECT_DOUBLE_EQ(json_of(squad)["exact_match"], 50);
}

TEST_F(ScoreCommands, BadInputIsOneMessageAndExitCode2) {
  const auto refuses = [&](const Words& words, const std::string& message) {
    const Outcome outcome = run_teratron(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  };
  refuses(command("qqp", kPairs, "index\tprediction\n9\t1\n"), "the row 9 is predicted, and the data have 4 rows");
  refuses(command("mnli", kPairs, "index\tprediction\n"), ":1: this is neither a header with sentence1");
  refuses(command("race", kArticle, R"({"high1.txt": ["A"]})"), "'high1.txt' has 2 questions and 1 prediction");
}

}  // namespace
}  // namespace teratron::testing
