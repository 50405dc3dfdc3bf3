// RACE: its files and scores, by hand, by direct counts over random files, and on the shared data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/compressed.h"
#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/damage.h"
#include "tasks/race/score.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json article(const std::string& id, const std::vector<std::string>& answers) {
  Json json = {{"id", id}, {"article", "It rained."}, {"questions", Json::array()}, {"options", Json::array()}};
  json["answers"] = answers;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    json["questions"].push_back(fmt::format("What {} _ ?", i));
    json["options"].push_back({"rain", "snow", "sun", "fog"});
  }
  return json;
}

class RaceFiles : public ::testing::Test {
 protected:
  race::Dataset data(const std::string& text, const std::string& name = "dev.jsonl") {
    put_file(folder_ / name, text);
    return race::read_dataset(std::vector<fs::path>{folder_ / name});
  }
  std::string refusal(const Json& json) {
    return message_of<UserError>([&] { data(article("high1.txt", {"A"}).dump() + "\n\n" + json.dump() + "\n"); });
  }
  std::string refusal_of_predictions(const std::string& text) {
    put_file(folder_ / "p.json", text);
    return message_of<UserError>([&] { race::read_predictions(folder_ / "p.json"); });
  }
  TemporaryFolder folder_;
};

TEST(Race, TheOptionTakesThePlaceOfTheBlank) {
  EXPECT_EQ(race::question_with_option("It was _ .", "red"), "It was red .");
  EXPECT_EQ(race::question_with_option("_ and _", "red"), "red and red");
  EXPECT_EQ(race::question_with_option("What was it?", "red"), "What was it? red");
  EXPECT_EQ(race::question_with_option("_", "a_b"), "a_b");  // the option's own are text
}

TEST_F(RaceFiles, TheOfficialFoldersAndJsonLinesAreTheSame) {
  const Json middle = article("middle1.txt", {"B", "D"}), high = article("high2.txt", {"C"});
  fs::create_directories(folder_ / "dev/middle");
  fs::create_directories(folder_ / "dev/high");
  put_file(folder_ / "dev/middle/1.txt", middle.dump());
  put_file(folder_ / "dev/high/2.txt", high.dump(2));  // an object may have many lines
  const std::string lines = high.dump() + "\n" + middle.dump() + "\n";
  const race::Dataset of_folder = race::read_dataset(std::vector<fs::path>{folder_ / "dev"});
  for (const race::Dataset& dataset :
       {of_folder, data(lines), data(zstd(lines), "dev.jsonl.zst"), data(gzip(lines), "dev.jsonl.gz")}) {
    ASSERT_EQ(dataset.size(), 2U);
    EXPECT_EQ(dataset[0].id, "high2.txt");
    EXPECT_EQ(dataset[0].level, race::Level::kHigh);
    EXPECT_EQ(dataset[1].level, race::Level::kMiddle);
    EXPECT_EQ(dataset[1].text, "It rained.");
    ASSERT_EQ(dataset[1].questions.size(), 2U);
    EXPECT_EQ(dataset[1].questions[1].text, "What 1 _ ?");
    EXPECT_EQ(dataset[1].questions[1].answer, 3);
    EXPECT_THAT(dataset[1].questions[0].options, ElementsAre("rain", "snow", "sun", "fog"));
  }
}

TEST_F(RaceFiles, ThePathGivesTheLevelWhereTheIdDoesNot) {
  const std::string text = article("7", {"A"}).dump();
  EXPECT_EQ(data(text)[0].level, std::nullopt);
  EXPECT_EQ(data(text, "dev.middle.jsonl")[0].level, race::Level::kMiddle);
  fs::create_directories(folder_ / "middle/high");
  EXPECT_EQ(data(text, "middle/7.txt")[0].level, race::Level::kMiddle);
  EXPECT_EQ(data(text, "middle/high/7.txt")[0].level, race::Level::kHigh);
  EXPECT_EQ(data(article("high7.txt", {"A"}).dump(), "dev.middle.jsonl")[0].level, race::Level::kHigh);
}

TEST_F(RaceFiles, NameFileLineAndArticleOfAFault) {
  const auto changed = [](const auto& change) {
    Json json = article("high2.txt", {"A", "B"});
    change(json);
    return json;
  };
  EXPECT_THAT(refusal(changed([](Json& json) { json["answers"][1] = "E"; })),
              AllOf(HasSubstr("dev.jsonl:3', article 'high2.txt'"), HasSubstr("answer to question 2 is none of A, B")));
  EXPECT_THAT(refusal(changed([](Json& json) { json["answers"][1] = 1; })), HasSubstr("answer to question 2"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["answers"][0] = ""; })), HasSubstr("answer to question 1"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["answers"].erase(0); })),
              HasSubstr("2 questions, 2 lists of options and 1 answer"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["options"].erase(0); })), HasSubstr("1 list of options"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["options"][1].erase(0); })),
              HasSubstr("question 2 has not four options"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["options"][0][2] = " "; })),
              HasSubstr("an option of question 1 is empty"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["questions"][0] = ""; })), HasSubstr("the text of question 1"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["questions"][0] = Json::array(); })), HasSubstr("question 1"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["article"] = " \n"; })),
              HasSubstr("'high2.txt': its text is empty"));
  EXPECT_THAT(refusal(changed([](Json& json) { json.erase("article"); })), HasSubstr("dev.jsonl:3' lacks \"article\""));
  EXPECT_THAT(refusal(changed([](Json& json) { json["questions"] = "?"; })), HasSubstr("\"questions\" must be a list"));
  EXPECT_THAT(refusal(changed([](Json& json) { json["id"] = "high1.txt"; })),
              HasSubstr("the article 'high1.txt', which was read before"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("dev.jsonl:3' is not a JSON object"));
  EXPECT_THAT(message_of<UserError>([&] { data("\n"); }), HasSubstr("no questions"));
  EXPECT_THAT(message_of<UserError>([&] { data(article("a", {}).dump()); }), HasSubstr("no questions"));
  EXPECT_THAT(message_of<UserError>([&] { race::read_dataset({}); }), HasSubstr("name at least one"));
}

TEST_F(RaceFiles, PlantedPredictionsScore) {
  const race::Dataset dataset =
      data(article("middle1.txt", {"A", "B", "C"}).dump() + "\n" + article("high2.txt", {"D", "D"}).dump() + "\n" +
           article("other", {"A"}).dump() + "\n" + article("high3.txt", {"A", "B"}).dump());
  put_file(folder_ / "p.json",
           R"({"middle1.txt": ["A", "C", "C"], "high2.txt": ["D", "A"], "other": ["A"], "x": ["B"]})");
  const race::ScoresByLevel scores = race::score(dataset, race::read_predictions(folder_ / "p.json"));
  EXPECT_EQ(scores.all.questions, 8);
  EXPECT_EQ(scores.all.without_prediction, 2);
  EXPECT_DOUBLE_EQ(scores.middle.accuracy, 200.0 / 3);
  EXPECT_DOUBLE_EQ(scores.high.accuracy, 25);
  EXPECT_DOUBLE_EQ(scores.all.accuracy, 50);
  EXPECT_THAT(message_of<UserError>([&] {
                race::score(dataset, {{"high2.txt", {1}}});
              }),
              HasSubstr("the article 'high2.txt' has 2 questions and 1 prediction"));
}

TEST_F(RaceFiles, WrongPredictionsAreReportedByArticle) {
  for (const char* answers : {R"("A")", R"(["E"])", R"(["AB"])", R"([1])", R"(["a"])", "null"}) {
    EXPECT_THAT(refusal_of_predictions(fmt::format(R"({{"x": ["A"], "high2": {}}})", answers)),
                AllOf(HasSubstr("p.json', article 'high2'"), HasSubstr("A, B, C, D")));
  }
  EXPECT_THAT(refusal_of_predictions("[]"), HasSubstr("not a JSON object"));
}

// A file of random articles, what a direct count says of random predictions to it, and these as they come back.
TEST_F(RaceFiles, ScoresAreDirectCountsOverRandomFiles) {
  RandomSequence random({.seed = 4});
  const std::string letters = "ABCD";
  for (int trial = 0; trial < 200; ++trial) {
    std::string text;
    race::Predictions given;
    int questions[2] = {}, right[2] = {};
    const std::size_t articles = 1 + random.below(10);
    for (std::size_t i = 0; i < articles; ++i) {
      const bool is_high = random.below(2) == 1, is_predicted = random.below(6) != 0;
      const std::string id = fmt::format("{}{}.txt", is_high ? "high" : "middle", i);
      std::vector<std::string> answers(1 + random.below(5));
      std::vector<int> predicted;
      for (std::string& answer : answers) {
        const std::size_t number = random.below(4);
        answer = letters[number];
        predicted.push_back(static_cast<int>(random.below(4)));
        ++questions[is_high];
        if (is_predicted && predicted.back() == static_cast<int>(number)) ++right[is_high];
      }
      text += article(id, answers).dump() + "\n";
      if (is_predicted) given[id] = predicted;
    }
    race::write_predictions(folder_ / "p.json", given);
    const race::Predictions read = race::read_predictions(folder_ / "p.json");
    ASSERT_EQ(read, given);
    const race::ScoresByLevel scores = race::score(data(text), read);
    EXPECT_EQ(scores.middle.questions, questions[0]);
    EXPECT_EQ(scores.high.questions, questions[1]);
    EXPECT_EQ(scores.middle.right, right[0]);
    EXPECT_EQ(scores.high.right, right[1]);
    EXPECT_DOUBLE_EQ(scores.all.accuracy, 100.0 * (right[0] + right[1]) / (questions[0] + questions[1]));
  }
}

// Counts of its SOURCE.txt, and train's of `zstd -dc | wc -l` and its questions by Python.
TEST(RaceSharedData, HasTheArticlesAndQuestionsThatItsSourceSays) {
  const fs::path folder = fs::path(TERATRON_SOURCE_DIR) / "../shared/data/race";
  if (!fs::exists(folder)) GTEST_SKIP() << "../shared/data/race is absent";
  struct Part {
    std::string name;
    std::size_t articles;
    std::int64_t questions;
  };
  std::vector<fs::path> dev;
  for (const Part& part : {Part{"dev.high.jsonl", 1021, 3451}, Part{"dev.middle.jsonl", 368, 1436},
                           Part{"train.middle.jsonl.zst", 6409, 25421}}) {
    const race::Dataset dataset = race::read_dataset(std::vector<fs::path>{folder / part.name});
    EXPECT_EQ(dataset.size(), part.articles) << part.name;
    const race::ScoresByLevel scores = race::score(dataset, {});
    const bool is_high = part.name.find("high") != std::string::npos;
    EXPECT_EQ((is_high ? scores.high : scores.middle).questions, part.questions) << part.name;
    EXPECT_EQ((is_high ? scores.middle : scores.high).questions, 0) << part.name;
    if (part.name.starts_with("dev")) dev.push_back(folder / part.name);
  }
  race::Predictions always_c;  // of the answers of dev, 917 (high) and 386 (middle) are C
  const race::Dataset dataset = race::read_dataset(dev);
  for (const race::Article& one : dataset) always_c[one.id].assign(one.questions.size(), 2);
  const race::ScoresByLevel scores = race::score(dataset, always_c);
  EXPECT_EQ(scores.high.right, 917);
  EXPECT_EQ(scores.middle.right, 386);
  EXPECT_EQ(scores.all.questions, 3451 + 1436);
}

}  // namespace
}  // namespace teratron::testing
