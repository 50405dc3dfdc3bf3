#include "eval/multiple_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "comm/launch.h"
#include "data/dataset_fixture.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<ChoiceQuestion> questions_of(const std::string& lines) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "q.jsonl", lines);
  return read_choice_questions(folder.path() / "q.jsonl");
}

// Contexts and choices that the harness's templates give for these objects.
TEST(MultipleChoice, PublishedSetsHaveTheHarnesssPrompts) {
  const std::vector<ChoiceQuestion> questions = questions_of(
      R"({"context": "two and two", "choices": ["is four", "is five", "is six"], "answer": 2})"
      "\n\n"
      R"({"activity_label": "Roof", "ctx_a": "A man [x] sits.", "ctx_b": "he STARTS", "ctx": "-", "endings": ["runs. [title] Now", "[step] falls"], "label": "1"})"
      "\n"
      R"({"ctx": " He [note]  sits ", "endings": ["up", "down", "still"], "label": 0})"
      "\n"
      R"({"goal": "open it", "sol1": "pull", "sol2": "push", "label": 1})"
      "\n"
      R"({"question": "Why?", "choices": {"text": ["so", "not"], "label": ["1", "2"]}, "answerKey": "2"})"
      "\n"
      R"({"question_stem": "The sun is", "choices": {"text": ["hot", "cold"], "label": ["A", "B"]}, "answerKey": "A"})"
      "\n"
      R"({"question": " Sum? ", "subject": "high_school", "choices": ["1", "2", "3"], "answer": "C"})"
      "\n");
  ASSERT_EQ(questions.size(), 7U);
  std::vector<std::string> contexts;
  std::vector<std::int64_t> answers, lines;
  for (const ChoiceQuestion& question : questions) {
    contexts.push_back(question.context);
    answers.push_back(question.answer);
    lines.push_back(question.line);
  }
  EXPECT_THAT(contexts,
              ElementsAre("two and two", "Roof: A man sits. He starts", "He  sits",
                          "Question: open it\nAnswer:", "Question: Why?\nAnswer:", "The sun is",
                          "The following are multiple choice questions (with answers) about high school.\n\nSum?\nA. "
                          "1\nB. 2\nC. 3\nAnswer:"));
  EXPECT_THAT(answers, ElementsAre(2, 1, 0, 1, 1, 0, 2));
  EXPECT_THAT(lines, ElementsAre(1, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(questions[1].choices, ElementsAre("runs.. Now", " falls"));
  EXPECT_THAT(questions[4].choices, ElementsAre("so", "not"));
  EXPECT_THAT(questions[6].choices, ElementsAre("A", "B", "C"));
}

TEST(MultipleChoice, AnAnswersNumberMayHaveSeveralDigits) {
  const std::string many = R"({"context": "a", "choices": ["0","1","2","3","4","5","6","7","8","9","ten"], "answer": )";
  for (const char* answer : {"10", "\"10\"", "\" 10 \"", "\"K\""}) {
    EXPECT_EQ(questions_of(many + answer + "}\n").front().answer, 10) << answer;
  }
}

TEST(MultipleChoice, ABadLineIsOneErrorThatNamesIt) {
  const std::string good = R"({"context": "a", "choices": ["b", "c"], "answer": 0})"
                           "\n";
  const std::pair<const char*, const char*> bad[] = {
      {R"({"text": "a"})", "no known form"},
      {R"({"context": "a", "question": "b", "choices": ["c", "d"], "answer": 0})", "together are no known form"},
      {R"({"context": "a", "choices": ["b", "c"], "answer": 2})", "none of its 2 choices"},
      {R"({"context": "a", "choices": ["b", "c"], "answer": -1})", "none of its 2 choices"},
      {R"({"context": "a", "choices": ["b", "c"], "answer": ""})", "none of its 2 choices"},
      {R"({"context": "a", "choices": ["b", "c"], "answer": "02"})", "none of its 2 choices"},
      {R"({"context": "a", "choices": ["b", "c"], "answer": "99999999999999999999"})", "none of its 2 choices"},
      {R"({"context": "a", "choices": ["b", " "], "answer": 0})", "blank or no text"},
      {R"({"context": "a", "choices": ["b", 7], "answer": 0})", "blank or no text"},
      {R"({"context": "a", "choices": ["b"], "answer": 0})", "fewer than two"},
      {R"({"context": "a", "choices": "b", "answer": 0})", "a list of texts"},
      {R"({"context": 3, "choices": ["b", "c"], "answer": 0})", "context"},
      {R"({"context": "a", "choices": ["b", "c"]})", "answer"},
      {R"({"ctx": "a", "endings": ["b", "c"], "label": ""})", "none of its 2 choices"},
      {R"({"goal": "a", "sol1": "", "sol2": "c", "label": 0})", "sol1"},
      {R"({"question": "a", "choices": {"text": ["b", "c"], "label": ["A"]}, "answerKey": "A"})", "2 texts and 1"},
      {R"({"question": "a", "choices": {"text": ["b", "c"], "label": ["A", "B"]}, "answerKey": "C"})", "labels none"},
      {R"({"question": "a", "choices": {"text": ["b", "c"], "label": ["A", "A"]}, "answerKey": "A"})", "labels two"}};
  for (const auto& [line, message] : bad) {
    EXPECT_THAT([&] { questions_of(good + line + "\n"); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("q.jsonl:2"), HasSubstr(message))))
        << line;
  }
  EXPECT_THAT([] { questions_of("just text\n"); }, ThrowsMessage<UserError>(HasSubstr("q.jsonl")));
}

// Bytes are tokens here, so that the whole's tokens beyond the context's are the choice's bytes.
TEST(MultipleChoice, TheChoiceIsWhatFollowsTheContextsTokens) {
  const Tokenizer tokenizer = byte_tokenizer();
  const std::vector<ChoiceQuestion> questions = {{.context = "one", .choices = {"two", "3"}, .line = 1},
                                                 {.context = "one \n", .choices = {"two", "3"}, .line = 2},
                                                 {.context = "", .choices = {"two", "3"}, .line = 3}};
  const TokenizedChoices tokenized = tokenize_choices(questions, tokenizer, 100);
  const std::string expected[] = {"one| two", "one| 3", "one| \n two", "one| \n 3", "| two", "| 3"};
  ASSERT_EQ(tokenized.choices.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const std::size_t bar = expected[i].find('|');
    const Continuation& choice = tokenized.choices[i];
    std::vector<std::int32_t> ids = tokenizer.encode(expected[i].substr(0, bar) + expected[i].substr(bar + 1));
    if (bar == 0) ids.insert(ids.begin(), *tokenizer.end_of_text());
    EXPECT_EQ(choice.ids, ids) << expected[i];
    EXPECT_EQ(choice.scored, std::ssize(expected[i]) - static_cast<std::int64_t>(bar) - 1) << expected[i];
    EXPECT_EQ(choice.number, static_cast<std::int64_t>(i / 2) + 1);
  }
  EXPECT_EQ(tokenized.cut, 0);

  const TokenizedChoices cut = tokenize_choices(std::span(questions).first(1), tokenizer, 5);
  EXPECT_EQ(cut.cut, 1);
  EXPECT_EQ(cut.choices[0].ids, tokenizer.encode("ne two"));
  EXPECT_THAT([&] { tokenize_choices(questions, tokenizer, 3); }, ThrowsMessage<UserError>(HasSubstr("question 1")));
}

TEST(MultipleChoice, AccuracyIsOfSumsAndOfSumsPerCharacterAndByte) {
  const std::vector<ChoiceQuestion> questions = {{.choices = {"a", "bbbb"}, .answer = 1},
                                                 {.choices = {"a", "bbbb"}, .answer = 0},
                                                 {.choices = {"a", "b", "\xC3\xA9"}, .answer = 2},
                                                 {.choices = {"a", "b"}, .answer = 0}};
  const std::vector<double> sums = {-2, -3, -2, -3, -1, -4, -1.5, -1, -1};
  const ChoiceResult result = judge_choices(questions, sums);
  EXPECT_EQ(result.questions, 4);
  EXPECT_DOUBLE_EQ(result.by_sum.share, 0.5);        // the second, and the fourth, whose first of equals counts
  EXPECT_DOUBLE_EQ(result.by_character.share, 0.5);  // the first and the fourth
  EXPECT_DOUBLE_EQ(result.by_byte.share, 0.75);      // the third too, whose letter has two bytes
  EXPECT_DOUBLE_EQ(result.by_sum.standard_error, std::sqrt(0.25 / 3));
  EXPECT_EQ(judge_choices(std::span(questions).first(1), sums).by_sum.standard_error, 0);
}

// The model's own losses of whole sequences say what each continuation's sum is.
TEST(Continuations, SumsAreTheModelsLossesInEveryLayout) {
  constexpr std::int64_t kMost = 9;
  std::mt19937 random(8);
  std::vector<Continuation> all(19);
  for (Continuation& one : all) {
    one.ids.resize(2 + random() % kMost);
    for (std::int32_t& id : one.ids) {
      id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(small_config().vocab_size));
    }
    one.scored = 1 + static_cast<std::int64_t>(random() % (one.ids.size() - 1));
  }
  const auto backend = make_cpu_backend();
  LanguageModel model(*backend, small_config(), {.purpose = Purpose::kEvaluation, .batch = 1, .tokens = kMost});
  model.allocate();
  model.initialize(5);
  std::vector<double> expected;
  for (const Continuation& one : all) {
    const std::int64_t tokens = std::ssize(one.ids) - 1, first = tokens - one.scored;
    std::vector<float> losses(static_cast<std::size_t>(one.scored));
    const std::span<const std::int32_t> ids = one.ids;
    model.losses({.ids = ids.first(ids.size() - 1), .targets = ids.subspan(1), .batch = 1, .tokens = tokens}, first,
                 losses);
    expected.push_back(-std::accumulate(losses.begin(), losses.end(), 0.0));
  }
  for (const MeshShape& shape : std::vector<MeshShape>{{}, {.tensor = 3}, {.data = 3}, {.pipeline = 2, .data = 2}}) {
    run_ranks({}, shape.ranks(), [&](Communicator& world) {
      const auto here = make_cpu_backend();
      LanguageModel split(*here, small_config(),
                          {.purpose = Purpose::kEvaluation, .batch = 4, .tokens = kMost, .logits_chunk = 2},
                          std::make_shared<Mesh>(make_mesh(world, shape)));
      split.allocate();
      split.initialize(5);
      const ContinuationScores scores = score_continuations(split, all, "text");
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(scores.log_probabilities[i], expected[i], 1e-4) << i;
    });
  }
}

}  // namespace
}  // namespace teratron::testing
