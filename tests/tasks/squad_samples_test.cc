// SQuAD's questions as sequences and labels, and answers from them: what is odd, and random texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "data/text/input_files.h"
#include "tasks/squad/score.h"
#include "tasks/task_files.h"

namespace teratron::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string squad_json(const std::string& context, const std::string& questions) {
  return fmt::format(R"({{"data": [{{"paragraphs": [{{"context": "{}", "qas": [{}]}}]}}]}})", context, questions);
}

TEST_F(TaskFiles, QuestionsWithoutAnswersArePredictedAndNotTrainedOn) {
  const std::string without = squad_json("rain snow", R"({"id": "q", "question": "?"})"),
                    with = squad_json("rain fog", R"({"id": "r", "question": "?", "answers": [{"text": "fog"}]})");
  const auto set = open(TaskKind::kSquad1, without);
  EXPECT_FALSE(set->has_labels());
  EXPECT_THAT(set->examples().labels, ElementsAre(-1, -1));
  EXPECT_THAT(set->notes(), HasSubstr("; no labels"));
  TaskOutputValues outputs = {std::vector<float>(12)};
  EXPECT_THROW(set->scores(outputs), InternalError);
  EXPECT_EQ(predictions(*set, outputs), "{\"q\":\"snow\"}\n");
  EXPECT_THAT(refusal(TaskKind::kSquad1, {without}, default_reading(TaskKind::kSquad1), true),
              HasSubstr("no question to train on has a label (1 question read)"));
  const auto both = open(TaskKind::kSquad1, {without, with}, default_reading(TaskKind::kSquad1), true);
  EXPECT_THAT(both->examples().labels, ElementsAre(4, 4));
  EXPECT_THAT(both->notes(), HasSubstr("1 question without labels left out"));
  const squad::Dataset data{.paragraphs = {"rain"}, .questions = {{.id = "q", .text = "?", .is_labelled = false}}};
  EXPECT_THAT(message_of<UserError>([&] { squad::score(data, {}, squad::Version::kSquad1); }), HasSubstr("'q'"));
}

TEST_F(TaskFiles, AnswersOfAnImpossibleQuestionAreLearned) {
  const auto set = open(TaskKind::kSquad2, squad_json("rain fog", R"({"id": "r", "question": "?", "is_impossible": true,
                                                      "answers": [{"text": "fog"}]})"));
  EXPECT_THAT(set->examples().labels, ElementsAre(4, 4));
}

TEST_F(TaskFiles, CountOrRefuseOddEntriesOfSquad) {
  const TaskReading small = reading_of(10, 2, 1);
  // A question of five tokens; a paragraph of none; an answer of no token; one in no window; one not at its start.
  const auto long_question =
      open(TaskKind::kSquad1,
           {squad_json("rain snow", R"({"id": "q", "question": "what is the key ?", "answers": [{"text": "snow"}]})")},
           small);
  EXPECT_THAT(long_question->notes(), HasSubstr("1 question cut to 2 tokens"));
  EXPECT_THAT(long_question->examples().sequence(0), ::testing::ElementsAreArray(framed("what is", "rain snow")));
  const auto of_no_token =
      open(TaskKind::kSquad1,
           {squad_json("\\u0001\\u200b", R"({"id": "q", "question": "?", "answers": [{"text": "\u0001"}]})")}, small);
  EXPECT_THAT(of_no_token->examples().sequence(0), ::testing::ElementsAreArray(framed("?", "")));
  EXPECT_THAT(of_no_token->examples().labels, ElementsAre(0, 0));
  EXPECT_THAT(of_no_token->notes(), HasSubstr("1 answer whole in no window, and taken for none"));
  EXPECT_EQ(predictions(*of_no_token, {std::vector<float>(8)}), "{\"q\":\"\"}\n");
  const auto too_long =
      open(TaskKind::kSquad1,
           {squad_json("rain snow wind sun fog hail",
                       R"({"id": "q", "question": "what is", "answers": [{"text": "rain snow wind sun fog hail"}]})")},
           small);
  EXPECT_THAT(too_long->notes(), HasSubstr("1 answer whole in no window"));
  EXPECT_THAT(too_long->examples().labels, Each(0));
  const auto moved =
      open(TaskKind::kSquad1, {squad_json("rain snow rain", R"({"id": "q", "question": "?", "answers": [{"text": "rain",
                                                           "answer_start": 7}]})")},
           small);
  EXPECT_THAT(moved->notes(), HasSubstr("1 answer not where answer_start says"));
  EXPECT_THAT(moved->examples().labels, ElementsAre(3, 3));

  const std::string one = squad_json("rain", R"({"id": "q", "question": "?", "answers": [{"text": "rain"}]})");
  EXPECT_THAT(refusal(TaskKind::kSquad1, {one, one}, small), HasSubstr("the question 'q', which was read before"));
  EXPECT_THAT(refusal(TaskKind::kSquad1, {one}, reading_of(10, 2, 5)), HasSubstr("raise --seq-length by 1 at least"));
  EXPECT_THAT(refusal(TaskKind::kSquad1, {one}, reading_of(10, 9, 0)), HasSubstr("leaves 0 tokens for the paragraph"));
  TaskReading none = small;
  none.n_best = 0;
  EXPECT_THAT(refusal(TaskKind::kSquad1, {one}, none), HasSubstr("--n-best must be 1 at least"));
}

// A paragraph of words of random characters, some of which are no part of a token, and an answer of some of its words.
struct RandomQuestion {
  RandomQuestion(RandomSequence& random, bool may_be_impossible) {
    static const std::vector<std::string> pieces = {
        "rain", "Snow",         "key", ".", "\xC3\xA9", "\xE4\xB8\xAD\xE6\x96\x87", "#1", kMark,
        kSpace, "\xED\x95\x9C", "xyz", "-", "(sun)"};
    std::vector<std::string> words(1 + random.below(30));
    for (std::string& word : words) {
      for (std::uint64_t more = 1 + random.below(2); more > 0; --more) word += pieces[random.below(pieces.size())];
    }
    context = fmt::format("{}", fmt::join(words, " "));
    is_impossible = may_be_impossible && random.below(3) == 0;
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(random.below(words.size()));
    const auto count = 1 + static_cast<std::ptrdiff_t>(random.below(5));
    const auto end = first + std::min(count, words.end() - first);
    answer = fmt::format("{}", fmt::join(first, end, " "));
    has_start = random.below(2) == 0;
    start =
        count_characters(fmt::format("{}", fmt::join(words.begin(), first, " "))) + (first == words.begin() ? 0 : 1);
  }

  nlohmann::json paragraph(std::size_t id) const {
    nlohmann::json one = {{"text", answer}}, answers = nlohmann::json::array();
    if (has_start) one["answer_start"] = start;
    if (!is_impossible) answers.push_back(one);
    return {
        {"context", context},
        {"qas",
         {{{"id", fmt::format("{}", id)}, {"question", "?"}, {"is_impossible", is_impossible}, {"answers", answers}}}}};
  }

  // Without what is part of no token, spaces at the ends included.
  static std::string bare(std::string text) {
    for (const char* dropped : {kMark, kSpace}) {
      for (std::size_t at = 0; (at = text.find(dropped)) != std::string::npos;) text.erase(at, std::strlen(dropped));
    }
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  }

  // Whether a prediction is the answer, or at least covers it where it may begin within a word.
  bool is_right(const std::string& prediction) const {
    if (is_impossible) return prediction.empty();
    if (has_start) return squad::normalized(bare(prediction)) == squad::normalized(bare(answer));
    return bare(prediction).find(bare(answer)) != std::string::npos;
  }

  static constexpr const char *kMark = "\xCC\x81", *kSpace = "\xE2\x80\x8B";  // an accent; a space of no width
  std::string context, answer;
  bool is_impossible = false, has_start = false;
  std::size_t start = 0;
};

TEST_F(TaskFiles, AnswersThatFitComeBackFromTheirLabels) {
  RandomSequence random({.seed = 7});
  int wrong = 0, all = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const TaskKind kind = random.below(2) == 0 ? TaskKind::kSquad1 : TaskKind::kSquad2;
    const RandomQuestion question(random, kind == TaskKind::kSquad2);
    if (is_blank(question.context)) continue;
    const std::string text = nlohmann::json{{"data", {{{"paragraphs", {question.paragraph(0)}}}}}}.dump();
    TaskReading reading = reading_of(8 + static_cast<std::int64_t>(random.below(60)), 2, 0);
    reading.doc_stride = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(reading.seq_length - 5)));
    const auto set = open(kind, std::vector{text}, reading);
    const auto answers = nlohmann::json::parse(predictions(*set, right_outputs(set->examples(), shape_of(kind))));
    const auto tokens = std::ssize(tokenizer_.encode(question.answer));
    ++all;
    if (question.is_right(answers["0"].get<std::string>())) {
      if (!question.is_impossible && tokens > 0) {
        EXPECT_THAT(set->notes(), Not(HasSubstr("whole in no window"))) << text;
      }
      continue;
    }
    ++wrong;
    EXPECT_THAT(set->notes(), HasSubstr("1 answer whole in no window")) << answers << " in " << text;
    EXPECT_TRUE(tokens == 0 || tokens > reading.doc_stride + 1) << tokens << " tokens, with " << reading.doc_stride;
  }
  EXPECT_GT(all, 900);
  EXPECT_GT(wrong, 20);
  EXPECT_LT(wrong, all / 3);
}

}  // namespace
}  // namespace teratron::testing
