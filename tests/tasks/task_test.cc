// The tasks as training and evaluation see them: sequences, labels, predictions and scores of small files, of random
// texts, and of the shared data.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "base/host/threads.h"
#include "tasks/task_files.h"
#include "tokenizer/bpe/bpe_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

double first_score(const TaskSet& set, const TaskOutputValues& outputs) { return set.scores(outputs).front().value; }

TEST_F(TaskFiles, EveryTaskHasItsName) {
  std::vector<std::string> names;
  for (const TaskKind kind : all_tasks()) names.emplace_back(name_of(kind));
  EXPECT_THAT(names, ElementsAre("mnli", "qqp", "squad1", "squad2", "race", "classify", "embed", "tag"));
  EXPECT_THAT(message_of<UserError>([&] { open_task(TaskKind::kRace, {}, tokenizer_, {}, false); }),
              HasSubstr("name at least one"));
}

TEST_F(TaskFiles, SequencesHoldTheTextsInTheirOrder) {
  const auto mnli = open(TaskKind::kMnli, "entailment\train is snow\tno\n");
  EXPECT_THAT(mnli->examples().sequence(0), ::testing::ElementsAreArray(framed("rain is snow", "no")));
  EXPECT_EQ(mnli->examples().second(0), 5);
  EXPECT_THAT(mnli->examples().labels_of(0), ElementsAre(1));
  EXPECT_EQ(mnli->examples().longest(), 7);

  const auto race =
      open(TaskKind::kRace, R"({"id": "high1", "article": "rain is snow .", "questions": ["what is _ ?"], )"
                            R"("options": [["sun", "fog", "rain", "wind"]], "answers": ["C"]})");
  ASSERT_EQ(race->examples().sequences(), 4);
  EXPECT_EQ(race->examples().count(), 1);
  EXPECT_THAT(race->examples().sequence(2), ::testing::ElementsAreArray(framed("rain is snow .", "what is rain ?")));
  EXPECT_THAT(race->examples().labels_of(0), ElementsAre(2));

  const auto squad = open(TaskKind::kSquad1, R"({"data": [{"paragraphs": [{"context": "rain is Snow, snow is fog",
      "qas": [{"id": "q", "question": "what is rain ?", "answers": [{"text": "snow is", "answer_start": 14}]}]}]}]})");
  EXPECT_THAT(squad->examples().sequence(0),
              ::testing::ElementsAreArray(framed("what is rain ?", "rain is snow, snow is fog")));
  EXPECT_EQ(squad->examples().second(0), 6);
  EXPECT_THAT(squad->examples().labels_of(0), ElementsAre(10, 11));
}

// Whether a sequence of a task's synthetic file has two texts.
bool has_pairs(TaskKind kind) {
  return kind != TaskKind::kClassify && kind != TaskKind::kEmbed && kind != TaskKind::kTag;
}

class SyntheticTask : public TaskFiles, public ::testing::WithParamInterface<TaskKind> {};
INSTANTIATE_TEST_SUITE_P(Each, SyntheticTask, ::testing::ValuesIn(all_tasks().begin(), all_tasks().end()),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST_P(SyntheticTask, RightOutputsScoreOneHundredAndOthersWhatTheyShould) {
  const auto set = open(GetParam(), task_file(GetParam(), 60, 1));
  ASSERT_TRUE(set->has_labels());
  TaskOutputValues outputs = right_outputs(set->examples(), synthetic_shape(GetParam()));
  // Those of embed are correlations, of cosines that are labels rounded.
  const bool has_vectors = GetParam() == TaskKind::kEmbed;
  for (const TaskScore& score : set->scores(outputs)) {
    EXPECT_NEAR(score.value, 100, has_vectors ? 1e-4 : 1e-10) << score.name;
  }
  // For every fourth example all outputs are equal: the first label or option wins, and for spans the last token.
  int wrong = 0;
  for (std::size_t i = 0; i < outputs.size(); i += 4) {
    std::ranges::fill(outputs[i], 0.0F);
    const auto labels = set->examples().labels_of(static_cast<std::int64_t>(i));
    const bool is_span = synthetic_shape(GetParam()).outputs == TaskOutputs::kSpans;
    // In SQuAD 2.0 an empty answer is not taken where a span has the same score.
    wrong += is_span || labels[0] != 0 ? 1 : 0;
  }
  if (has_vectors || GetParam() == TaskKind::kTag) {  // whose scores are not of examples
    EXPECT_LT(set->scores(outputs).front().value, 95);
    return;
  }
  // A word that is of the answer by chance counts for F1 alone.
  const double score =
      set->scores(outputs).at(GetParam() == TaskKind::kSquad1 || GetParam() == TaskKind::kSquad2 ? 1 : 0).value;
  EXPECT_NEAR(score, 100.0 * (60 - wrong) / 60, 1e-9);
}

TEST_P(SyntheticTask, TheNumberOfThreadsMakesNoDifference) {
  const std::string file = task_file(GetParam(), 300, 2);
  const int before = thread_count();
  set_thread_count(1);
  const auto alone = open(GetParam(), file);
  set_thread_count(4);
  const auto together = open(GetParam(), file);
  EXPECT_EQ(alone->examples().ids, together->examples().ids);
  EXPECT_EQ(alone->examples().begins, together->examples().begins);
  EXPECT_EQ(alone->examples().labels, together->examples().labels);
  const auto outputs = right_outputs(alone->examples(), synthetic_shape(GetParam()));
  EXPECT_EQ(predictions(*alone, outputs), predictions(*together, outputs));
  set_thread_count(before);
}

TEST_P(SyntheticTask, SequencesAreFramedPairsNoLongerThanAskedFor) {
  RandomSequence random({.seed = 3});
  for (int trial = 0; trial < 40; ++trial) {
    const auto length = 5 + static_cast<std::int64_t>(random.below(40));
    const auto query =
        1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::min(length - 4, 9L))));
    const auto stride = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length - 3 - query)));
    const auto set =
        open(GetParam(), std::vector{task_file(GetParam(), 20, random.next_u32())}, reading_of(length, query, stride));
    const TaskExamples& all = set->examples();
    ASSERT_EQ(all.sequences(), all.count() * all.sequences_each);
    ASSERT_EQ(std::ssize(all.labels), all.labels_tokens() ? std::ssize(all.ids) : all.count() * all.labels_each);
    EXPECT_LE(all.longest(), length);
    for (std::int64_t i = 0; i < all.sequences(); ++i) {
      const auto ids = all.sequence(i);
      EXPECT_EQ(ids.front(), 2);
      EXPECT_EQ(ids.back(), 3);
      EXPECT_EQ(ids[static_cast<std::size_t>(all.second(i) - 1)], 3);
      EXPECT_EQ(std::ranges::count(ids, 3), has_pairs(GetParam()) ? 2 : 1);
    }
  }
}

TEST_P(SyntheticTask, OutputsOfOtherExamplesAreABug) {
  const auto set = open(GetParam(), task_file(GetParam(), 5, 4));
  TaskOutputValues outputs = right_outputs(set->examples(), synthetic_shape(GetParam()));
  outputs.back().pop_back();
  EXPECT_THROW(set->scores(outputs), InternalError);
  outputs.pop_back();
  EXPECT_THROW(set->write_predictions(folder_ / "p", outputs), InternalError);
}

TEST_P(SyntheticTask, NamesUnreadableFilesAndTheRemedy) {
  const std::vector<std::string> texts = {task_file(GetParam(), 5, 5)};
  EXPECT_THAT(refusal(GetParam(), texts, reading_of(has_pairs(GetParam()) ? 4 : 2, 1, 0)),
              HasSubstr(has_pairs(GetParam()) ? "--seq-length 4 is too short for a pair"
                                              : "--seq-length 2 is too short for a text"));
  const fs::path file = folder_ / task_file_name(GetParam());
  put_file(file, texts[0]);
  BpeModel bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.tokens.emplace_back(1, static_cast<char>(byte));
  EXPECT_THAT(message_of<UserError>([&] {
                open_task(GetParam(), std::vector{file}, Tokenizer(bytes), default_reading(GetParam()), false);
              }),
              HasSubstr("the tokenizer is BPE"));
}

// Whatever their labels: the second pair alone. Each of RACE's four sequences counts.
TEST_F(TaskFiles, ExamplesOfAnotherSetAreFoundByTheirTexts) {
  const auto set = open(TaskKind::kMnli, "neutral\train\tsnow\nneutral\tsun\tfog\nneutral\train sun\tsnow\n");
  const auto other = open(TaskKind::kMnli, "entailment\tsun\tfog\nneutral\train\tsun\nneutral\tsnow\train\n");
  EXPECT_EQ(set->examples().count_in(other->examples()), 1);
  const auto questions = open(TaskKind::kRace, task_file(TaskKind::kRace, 20, 1)),
             others = open(TaskKind::kRace, task_file(TaskKind::kRace, 20, 2));
  EXPECT_EQ(questions->examples().count_in(questions->examples()), 20);
  EXPECT_EQ(questions->examples().count_in(others->examples()), 0);
}

TEST_F(TaskFiles, APairLosesTheEndOfItsLongerSide) {
  const std::string six = "rain snow wind sun fog hail", two = "tree bird";
  const auto cut = [&](const std::string& a, const std::string& b, std::int64_t seq_length) {
    const auto set = open(TaskKind::kMnli, {fmt::format("neutral\t{}\t{}\n", a, b)}, {.seq_length = seq_length});
    EXPECT_THAT(set->notes(), HasSubstr(fmt::format("1 cut to {} tokens", seq_length)));
    const auto ids = set->examples().sequence(0);
    return std::vector(ids.begin(), ids.end());
  };
  EXPECT_EQ(cut(six, two, 9), framed("rain snow wind sun", two));
  EXPECT_EQ(cut(two, six, 9), framed(two, "rain snow wind sun"));
  EXPECT_EQ(cut(six, two, 6), framed("rain snow", "tree"));
  EXPECT_EQ(cut(two, six, 6), framed("tree", "rain snow"));
  EXPECT_EQ(cut(six, six, 10), framed("rain snow wind", "rain snow wind sun"));
  const std::string pair = fmt::format("neutral\t{}\t{}\n", six, two);
  EXPECT_THAT(open(TaskKind::kMnli, {pair}, {.seq_length = 11})->notes(), Not(HasSubstr("cut"))) << "it just fits";
}

TEST_F(TaskFiles, AQuestionWithItsOptionIsCutBeforeTheArticle) {
  const auto set =
      open(TaskKind::kRace,
           {R"({"id": "high1", "article": "rain is snow . rain is fog", "questions": )"
            R"(["what is rain"], "options": [["sun", "sun sun", "rain", "wind wind wind"]], "answers": ["C"]})"},
           reading_of(12, 4, 0));
  EXPECT_THAT(set->examples().sequence(3),
              ::testing::ElementsAreArray(framed("rain is snow . rain", "what is rain wind")));
  EXPECT_THAT(set->notes(), HasSubstr("1 question on 1 article, 4 sequences; 4 sequences cut to 12 tokens; 2 questions "
                                      "with an option cut to 4 tokens"));
  EXPECT_THAT(refusal(TaskKind::kRace, {task_file(TaskKind::kRace, 1, 1)}, {.seq_length = 20}),
              HasSubstr("--max-query-length must be 1 at least"));
}

TEST_F(TaskFiles, TestSetsOfPairsArePredictedRowByRow) {
  const std::string file = "index\tsentence1\tsentence2\n0\train\tsnow\n1\tsun\t \n2\tfog\tfog\n";
  const auto set = open(TaskKind::kMnli, file);
  EXPECT_FALSE(set->has_labels());
  EXPECT_THAT(set->examples().labels, ElementsAre(-1, -1));
  EXPECT_EQ(set->notes(), "2 pairs; 1 row left out, because a sentence is empty; no labels");
  const TaskOutputValues outputs = {{0, 1, 3}, {-1, -2, -2}};
  EXPECT_EQ(predictions(*set, outputs), "index\tprediction\n0\tneutral\n1\tcontradiction\n2\tcontradiction\n");
  EXPECT_THROW(set->scores(outputs), InternalError);
  EXPECT_THAT(refusal(TaskKind::kMnli, {file}, {}, true), HasSubstr("no pair to train on has a label (2 pairs read)"));
  const auto both = open(TaskKind::kMnli, {file, "neutral\train\tsnow\n"}, {}, true);
  EXPECT_THAT(both->examples().labels, ElementsAre(2));
  EXPECT_THAT(both->notes(), HasSubstr("1 pair; 2 without a label left out; 1 row left out"));
  EXPECT_THAT(both->notes(), HasSubstr("no pair is labelled contradiction"));
}

TEST_F(TaskFiles, RowsAreCountedOnThroughFiles) {
  const auto set =
      open(TaskKind::kMnli, std::vector<std::string>{"neutral\train\tsnow\n-\ta\tb\n", "entailment\tsun\tfog\n"}, {});
  EXPECT_EQ(predictions(*set, {{0, 0, 1}, {0, 1, 0}}),
            "index\tprediction\n0\tneutral\n1\tcontradiction\n2\tentailment\n");
  EXPECT_EQ(first_score(*set, {{0, 0, 1}, {0, 1, 0}}), 100);
}

TEST_F(TaskFiles, ScoresAreThoseThatEachTaskIsComparedBy) {
  const auto qqp = open(TaskKind::kQqp, "question1\tquestion2\tis_duplicate\na\tb\t1\na\tb\t1\na\tb\t0\na\tb\t0\n");
  const auto of_qqp = qqp->scores({{0, 1}, {1, 0}, {1, 0}, {1, 0}});
  EXPECT_EQ(of_qqp[0].name, "accuracy");
  EXPECT_DOUBLE_EQ(of_qqp[0].value, 75);
  EXPECT_EQ(of_qqp[1].name, "f1");
  EXPECT_NEAR(of_qqp[1].value, 200.0 / 3, 1e-9);

  RandomSequence random({.seed = 6});
  const auto race = open(TaskKind::kRace, race_file(20, random));
  std::vector<std::string> names;
  for (const TaskScore& score : race->scores(right_outputs(race->examples(), shape_of(TaskKind::kRace)))) {
    names.push_back(score.name);
  }
  EXPECT_THAT(names, ElementsAre("accuracy", "accuracy_middle", "accuracy_high"));

  const auto squad = open(TaskKind::kSquad1, R"({"data": [{"paragraphs": [{"context": "rain snow wind", "qas": [
      {"id": "q", "question": "?", "answers": [{"text": "snow wind"}]}]}]}]})");
  TaskOutputValues outputs = {std::vector<float>(14)};
  outputs[0][4] = outputs[0][7 + 4] = 1;  // "snow"
  const auto of_squad = squad->scores(outputs);
  EXPECT_EQ(of_squad[0].name, "f1");
  EXPECT_NEAR(of_squad[0].value, 200.0 / 3, 1e-9);
  EXPECT_EQ(of_squad[1].name, "exact_match");
  EXPECT_EQ(of_squad[1].value, 0);
  EXPECT_EQ(predictions(*squad, outputs), "{\"q\":\"snow\"}\n");
}

TEST_F(TaskFiles, AnEnsembleIsTheMeanOfItsModelsLogits) {
  const std::vector<TaskOutputValues> models = {{{1, 0}, {4, 0}}, {{0, 3}, {0, 1}}, {{2, 0}, {0, 1}}};
  const TaskOutputValues means = mean_of(models);
  EXPECT_THAT(means, ElementsAre(ElementsAre(1, 1), ElementsAre(4.0F / 3, 2.0F / 3)));
  EXPECT_THAT(mean_of(std::span(models).first(1)), models[0]);
  // Two of three models give the second pair label 1, and the mean label 0, since the third is surer.
  const auto set = open(TaskKind::kQqp, "question1\tquestion2\tis_duplicate\na\tb\t1\na\tb\t0\n");
  EXPECT_EQ(predictions(*set, means), "index\tprediction\n0\t0\n1\t0\n");
  EXPECT_THROW(mean_of({}), InternalError);
  EXPECT_THROW(mean_of(std::vector<TaskOutputValues>{{{1, 2}}, {{1}}}), InternalError);
  EXPECT_THROW(mean_of(std::vector<TaskOutputValues>{{{1}}, {{1}, {1}}}), InternalError);
}

class SharedTasks : public ::testing::Test {
 protected:
  static fs::path data() { return fs::path(TERATRON_SOURCE_DIR) / "../shared/data"; }
  // Reads it, and scores outputs that are right.
  std::vector<TaskScore> right_scores(TaskKind kind, const std::string& file) {
    TaskReading reading = default_reading(kind);
    reading.max_answer_length = 60;
    const auto set = open_task(kind, std::vector{data() / file}, Tokenizer::load(data() / "bert-vocab"), reading, true);
    fmt::print("{}: {}\n", name_of(kind), set->notes());
    return set->scores(right_outputs(set->examples(), shape_of(kind)));
  }
};

TEST_F(SharedTasks, RightOutputsScoreOneHundredPerCent) {
  if (!fs::exists(data() / "bert-vocab")) GTEST_SKIP() << "no data at " << data();
  for (const auto& [kind, file] : {std::pair(TaskKind::kMnli, "mnli-subset/mnli_matched.tsv"),
                                   std::pair(TaskKind::kRace, "race/dev.middle.jsonl")}) {
    for (const TaskScore& score : right_scores(kind, file)) EXPECT_DOUBLE_EQ(score.value, 100) << score.name;
  }
  for (const auto& [kind, file] : {std::pair(TaskKind::kSquad1, "squad/dev-v1.1.from-html.json"),
                                   std::pair(TaskKind::kSquad2, "squad/dev-v2.0.from-html.json")}) {
    for (const TaskScore& score : right_scores(kind, file)) {
      fmt::print("{} {}\n", score.name, score.value);
      EXPECT_GT(score.value, 99) << score.name;
    }
  }
}

TEST(Medians, AreTheMiddleOfTheScores) {
  EXPECT_EQ(median_of({70}), 0U);
  EXPECT_EQ(median_of({70, 90, 80}), 2U);
  EXPECT_EQ(median_of({3, 1, 5, 2, 4}), 0U);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 3U);     // 2, not 3
  EXPECT_EQ(median_of({7, 7, 1, 9, 7}), 0U);  // the first of equal ones
}

}  // namespace

}  // namespace teratron::testing
