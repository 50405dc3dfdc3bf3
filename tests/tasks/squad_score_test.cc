// SQuAD's scores: by hand, by properties, and on the predictions that its own site keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/lines.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "tasks/squad/score.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(SquadScore, NormalizesAsTheOfficialScriptDoes) {
  EXPECT_EQ(squad::normalized("The  Cat's  hat."), "cats hat");
  EXPECT_EQ(squad::normalized("an apple a day: the theatre"), "apple day theatre");
  EXPECT_EQ(squad::normalized("U.S.A."), "usa");
  EXPECT_EQ(squad::normalized("a-b"), "ab");  // punctuation goes first and parts nothing
  EXPECT_EQ(squad::normalized("10\xE2\x82\xAC"
                              "a b"),
            "10\xE2\x82\xAC b");  // "10EURa b": the sign ends a word, so "a" is one
  EXPECT_EQ(squad::normalized("\xC3\x89T\xC3\x89 the\xC2\xA0"
                              "a"),
            "\xC3\xA9t\xC3\xA9");
  EXPECT_EQ(squad::normalized("the"), "");
  EXPECT_EQ(squad::normalized(""), "");
}

TEST(SquadScore, F1CountsWordsThatRepeat) {
  for (const squad::Version version : {squad::Version::kSquad1, squad::Version::kSquad2}) {
    EXPECT_DOUBLE_EQ(squad::f1("x y", "x y", version), 1);
    EXPECT_DOUBLE_EQ(squad::f1("x x y", "x y y", version), 2.0 / 3);
    EXPECT_DOUBLE_EQ(squad::f1("x y z w", "x", version), 2 * 0.25 / 1.25);
    EXPECT_DOUBLE_EQ(squad::f1("x", "y", version), 0);
    EXPECT_DOUBLE_EQ(squad::f1("", "x", version), 0);
  }
  EXPECT_DOUBLE_EQ(squad::f1("", "", squad::Version::kSquad1), 0);
  EXPECT_DOUBLE_EQ(squad::f1("", "", squad::Version::kSquad2), 1);
}

// Random answers of the characters on which implementations differ (tests/golden/make_squad_score_golden.py).
TEST(SquadScore, IsThatOfTheOfficialScriptsInPython) {
  const std::vector<nlohmann::json> rows = json_lines(TERATRON_SOURCE_DIR "/tests/golden/squad_score.jsonl");
  for (const nlohmann::json& row : rows) {
    const std::string prediction = row[0], answer = row[1];
    EXPECT_EQ(squad::normalized(prediction), row[2].get<std::string>()) << row;
    EXPECT_EQ(squad::normalized(answer), row[3].get<std::string>()) << row;
    const auto scored = [&](squad::Version version) {
      const squad::Dataset dataset{.paragraphs = {answer},
                                   .questions = {{.id = "q", .text = "?", .answers = {{answer, {}}}}}};
      return squad::score(dataset, {{"q", prediction}}, version).all;
    };
    EXPECT_DOUBLE_EQ(scored(squad::Version::kSquad1).exact_match, 100.0 * row[4].get<double>()) << row;
    EXPECT_DOUBLE_EQ(scored(squad::Version::kSquad1).f1, 100.0 * row[5].get<double>()) << row;
    EXPECT_DOUBLE_EQ(scored(squad::Version::kSquad2).exact_match, 100.0 * row[4].get<double>()) << row;
    EXPECT_DOUBLE_EQ(scored(squad::Version::kSquad2).f1, 100.0 * row[6].get<double>()) << row;
  }
  EXPECT_EQ(rows.size(), 703U);
}

// F1 is between the exact match and 1, the same both ways, and does not depend on the order of words.
TEST(SquadScore, F1OverRandomTexts) {
  std::mt19937 random(1);
  const auto text = [&] {
    std::vector<std::string> words(random() % 6);
    for (std::string& word : words) word = std::string(1, static_cast<char>('p' + random() % 4));
    return words;
  };
  const auto joined = [](const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::string> a = text(), b = text();
    const double score = squad::f1(joined(a), joined(b), squad::Version::kSquad2);
    EXPECT_GE(score, joined(a) == joined(b) ? 1 : 0);
    EXPECT_LE(score, 1);
    EXPECT_DOUBLE_EQ(squad::f1(joined(b), joined(a), squad::Version::kSquad2), score);
    std::ranges::shuffle(a, random);
    EXPECT_DOUBLE_EQ(squad::f1(joined(a), joined(b), squad::Version::kSquad2), score);
  }
}

class SquadFiles : public ::testing::Test {
 protected:
  fs::path write(const std::string& text) {
    std::ofstream(folder_ / "file.json") << text;
    return folder_ / "file.json";
  }
  std::string refusal(const std::string& questions, squad::Version version) {
    return message_of<UserError>([&] {
      squad::read_dataset(
          write(R"({"data": [{"paragraphs": [{"context": "It was red.", "qas": [)" + questions + "]}]}]}"), version);
    });
  }
  TemporaryFolder folder_;
};

TEST_F(SquadFiles, NameTheQuestionOfAFault) {
  const std::string right = R"({"id": "q", "question": "?", "answers": [{"text": "red", "answer_start": 7}]})";
  EXPECT_EQ(refusal(right, squad::Version::kSquad1), kNoError);
  EXPECT_THAT(refusal(right + "," + right, squad::Version::kSquad1), HasSubstr("the question 'q' twice"));
  EXPECT_THAT(refusal(R"({"id": "q", "question": "?", "answers": [{"text": "blue"}]})", squad::Version::kSquad1),
              HasSubstr("'blue' of the question 'q' does not occur"));
  EXPECT_THAT(refusal(R"({"id": "q", "question": "?", "answers": [{"text": ""}]})", squad::Version::kSquad2),
              HasSubstr("the question 'q' has an answer without text"));
  EXPECT_THAT(refusal(R"({"id": "q", "question": "?", "answers": []})", squad::Version::kSquad1), HasSubstr("squad2"));
  EXPECT_THAT(refusal(R"({"question": "?", "answers": []})", squad::Version::kSquad2), HasSubstr("lacks \"id\""));
  EXPECT_THAT(refusal("", squad::Version::kSquad2), HasSubstr("no questions"));
  EXPECT_THROW(squad::read_dataset(write(R"({"data": [{"paragraphs": [{"context": " ", "qas": []}]}]})"),
                                   squad::Version::kSquad2),
               UserError);
  EXPECT_THROW(squad::read_predictions(write("[1]")), UserError);
  EXPECT_THROW(squad::read_predictions(write(R"({"q": 1})")), UserError);
}

// As in the official script, which does not read is_impossible, and takes a blank answer for none.
TEST_F(SquadFiles, AnswersAloneSayWhetherThereIsOne) {
  const std::string questions = R"({"id": "a", "question": "?", "is_impossible": true, "answers": [{"text": "red"}]},)"
                                R"({"id": "b", "question": "?", "is_impossible": false, "answers": []},)"
                                R"({"id": "c", "question": "?", "is_impossible": true, "answers": [{"text": " "}]})";
  EXPECT_EQ(refusal(questions, squad::Version::kSquad2), kNoError);
  const squad::Dataset dataset = squad::read_dataset(folder_ / "file.json", squad::Version::kSquad2);
  const squad::ScoresByAnswer scores =
      squad::score(dataset, {{"a", "red"}, {"b", ""}, {"c", "red"}}, squad::Version::kSquad2);
  EXPECT_EQ(scores.with_answer.questions, 1);
  EXPECT_DOUBLE_EQ(scores.with_answer.f1, 100);
  EXPECT_EQ(scores.without_answer.questions, 2);
  EXPECT_DOUBLE_EQ(scores.without_answer.f1, 50);
}

TEST_F(SquadFiles, AnAnswerThatIsNoneAndAMissingOneScore) {
  const squad::Dataset dataset{.paragraphs = {"It was red and blue."},
                               .questions = {{.id = "a", .text = "?", .answers = {{"red", {}}, {"red and blue", {}}}},
                                             {.id = "b", .text = "?", .answers = {}},
                                             {.id = "c", .text = "?", .answers = {{"blue", {}}}},
                                             {.id = "d", .text = "?", .answers = {}}}};
  const squad::ScoresByAnswer scores =
      squad::score(dataset, {{"a", "The red and"}, {"b", ""}, {"d", "red"}}, squad::Version::kSquad2);
  EXPECT_EQ(scores.all.questions, 4);
  EXPECT_EQ(scores.all.without_prediction, 1);
  EXPECT_DOUBLE_EQ(scores.all.exact_match, 25);
  EXPECT_DOUBLE_EQ(scores.all.f1, (0.8 + 1) / 4 * 100);  // "red and" of "red and blue"
  EXPECT_DOUBLE_EQ(scores.without_answer.exact_match, 50);
  EXPECT_DOUBLE_EQ(scores.with_answer.f1, 40);
}

// The figures of the data's SOURCE.txt, by another implementation of the official rules.
TEST(SquadPredictions, ScoreAsTheOfficialSite) {
  const fs::path data = fs::path(TERATRON_SOURCE_DIR) / "../shared/data/squad";
  if (!fs::exists(data)) GTEST_SKIP() << "../shared/data/squad is absent";
  const squad::Scores first =
      squad::score(squad::read_dataset(data / "dev-v1.1.from-html.json", squad::Version::kSquad1),
                   squad::read_predictions(data / "predictions/v1.1-Logistic-Regression-Baseline.json"),
                   squad::Version::kSquad1)
          .all;
  EXPECT_EQ(first.questions, 10570);
  EXPECT_EQ(first.without_prediction, 13);
  EXPECT_NEAR(first.exact_match, 40.1419, 5e-5);
  EXPECT_NEAR(first.f1, 50.9815, 5e-5);
  const squad::Scores second =
      squad::score(squad::read_dataset(data / "dev-v2.0.from-html.json", squad::Version::kSquad2),
                   squad::read_predictions(data / "predictions/v2.0-BiDAF-Self-Attention-ELMo.json"),
                   squad::Version::kSquad2)
          .all;
  EXPECT_EQ(second.without_prediction, 0);
  EXPECT_NEAR(second.exact_match, 65.7037, 5e-5);
  EXPECT_NEAR(second.f1, 67.8765, 5e-5);
}

}  // namespace
}  // namespace teratron::testing
