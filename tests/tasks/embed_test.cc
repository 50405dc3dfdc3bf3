// Pairs of texts whose vectors are learned: what is read, what is refused, and scores beside their definitions.
#include <gmock/gmock.h>

#include <random>

#include "tasks/embed/scores.h"
#include "tasks/task_entry.h"
#include "tasks/task_files.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EmbedFiles : public TaskFiles {
 protected:
  static TaskReading reading() {
    TaskReading usual = default_reading(TaskKind::kEmbed);
    usual.text_column = "a", usual.pair_column = "b";
    return usual;
  }
  std::unique_ptr<TaskSet> open_csv(const std::string& text, const TaskReading& with, bool training = false) {
    put_file(folder_ / "file.csv", text);
    return open_task(TaskKind::kEmbed, std::vector{folder_ / "file.csv"}, tokenizer_, with, training);
  }
  std::vector<std::int32_t> framed_alone(const std::string& text) const {
    std::vector<std::int32_t> ids = {2};
    tokenizer_.encode_to(text, ids);
    ids.push_back(3);
    return ids;
  }
  std::string refusal_of_labels(const std::string& text, const TaskReading& with) {
    put_file(folder_ / "file.csv", text);
    return message_of<UserError>([&] { labels_in_files(TaskKind::kEmbed, std::vector{folder_ / "file.csv"}, with); });
  }
};

TEST_F(EmbedFiles, EveryTextOfAnExampleIsASequence) {
  TaskReading with_negatives = reading();
  with_negatives.negative_column = "c";
  with_negatives.label_column.clear();
  const auto set = open_csv("c,b,a\nfog,rain snow,sun\nlake,,hill\n", with_negatives, true);
  const TaskExamples& examples = set->examples();
  EXPECT_EQ(examples.sequences_each, 3);
  EXPECT_TRUE(examples.are_negatives);
  ASSERT_EQ(examples.count(), 2);
  const std::vector<std::string> texts = {"sun", "rain snow", "fog", "hill", "", "lake"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_THAT(examples.sequence(static_cast<std::int64_t>(i)), ::testing::ElementsAreArray(framed_alone(texts[i])));
    EXPECT_EQ(examples.second(static_cast<std::int64_t>(i)), examples.length(static_cast<std::int64_t>(i)));
  }
  EXPECT_EQ(set->notes(), "2 triples of texts; 1 empty text");
}

TEST_F(EmbedFiles, TextsLoseTheirEnds) {
  TaskReading shorter = reading();
  shorter.seq_length = 4;
  const auto set = open_csv("a,b\nrain snow wind,sun\n", shorter);
  EXPECT_THAT(set->examples().sequence(0), ::testing::ElementsAreArray(framed_alone("rain snow")));
  EXPECT_THAT(set->notes(), HasSubstr("1 text cut to 4 tokens"));
}

TEST_F(EmbedFiles, SimilaritiesAreLearnedWhereTheFilesToTrainOnHaveThem) {
  const std::string file = "a,b,label\nrain,snow,0.5\nsun,fog,\nhill,lake,-1\n";
  put_file(folder_ / "file.csv", file);
  TaskReading with = reading();
  with.labels = labels_in_files(TaskKind::kEmbed, std::vector{folder_ / "file.csv"}, with);
  EXPECT_TRUE(with.labels.are_numbers);
  const auto training = open_csv(file, with, true);
  EXPECT_FALSE(training->examples().are_negatives);
  EXPECT_THAT(training->examples().labels, ElementsAre(label_of_number(0.5F), label_of_number(-1)));
  EXPECT_THAT(training->notes(), HasSubstr("1 without a similarity left out"));
  with.label_column.clear();
  EXPECT_FALSE(labels_in_files(TaskKind::kEmbed, std::vector{folder_ / "file.csv"}, with).are_numbers);
}

TEST_F(EmbedFiles, WhatCannotBeLearnedIsRefused) {
  EXPECT_THAT(refusal_of_labels("a,b,label\nrain,snow,0.5\nsun,fog,4.2\n", reading()),
              HasSubstr("file.csv:3: '4.2' is no similarity to learn, which is a number from -1 to 1"));
  EXPECT_THAT(refusal_of_labels("a,b,label\nrain,snow,yes\n", reading()), HasSubstr("file.csv:2: 'yes' is no"));
  // Similarities under another name would be left aside, and all pairs belong together.
  EXPECT_THAT(refusal_of_labels("a,b,score\nrain,snow,0.5\n", reading()),
              HasSubstr("has a similarity under 'label' (there are a, b, score); name their column"));
  EXPECT_THAT(refusal_of_labels("a,b, label\nrain,snow,0.5\n", reading()), HasSubstr("under 'label'"));
  TaskReading named = reading();
  named.label_column = "simi";
  EXPECT_THAT(refusal_of_labels("a,b\nrain,snow\n", named), HasSubstr("under 'simi'"));
  named.label_column.clear();
  put_file(folder_ / "file.csv", "a,b,score\nrain,snow,0.5\n");
  EXPECT_FALSE(labels_in_files(TaskKind::kEmbed, std::vector{folder_ / "file.csv"}, named).are_numbers);
  TaskReading both = reading();
  both.negative_column = "c";
  EXPECT_THAT(refusal_of_labels("a,b,c,label\nrain,snow,sun,1\n", both), HasSubstr("learn from one of both"));
  EXPECT_THAT(message_of<UserError>([&] { open_csv("a,b\nrain,snow\n", both); }),
              HasSubstr("no column is called 'c'; name one of a, b with --negative-column"));
  EXPECT_THAT(message_of<UserError>([&] { open_csv("a,x\nrain,snow\n", reading()); }),
              HasSubstr("no column is called 'b'"));
}

TEST_F(EmbedFiles, PairsWithoutAnySimilarityAreNoneToLearnSimilaritiesFrom) {
  TaskReading with = reading();
  with.labels.are_numbers = true;
  EXPECT_THAT(message_of<UserError>([&] { open_csv("a,b,label\nrain,snow,\nsun,fog,\n", with, true); }),
              HasSubstr("no pair to train on has a label (2 pairs read)"));
}

// Outputs are vectors (1, 0) and (cos, sin): once with cosines in the order of the labels, once in the reverse order.
TEST_F(EmbedFiles, HeldOutPairsWithSimilaritiesAreScoredByTheirOrder) {
  const auto set = open_csv("a,b,label\nrain,snow,5\nsun,fog,3\nhill,lake,\nmoss,leaf,1\n", reading());
  const auto with_cosines = [](std::initializer_list<float> cosines) {
    TaskOutputValues outputs;
    for (const float cosine : cosines) outputs.push_back({2, 0, 3 * cosine, 3 * std::sqrt(1 - cosine * cosine)});
    return outputs;
  };
  const std::vector<TaskScore> right = set->scores(with_cosines({0.9F, 0.2F, 0.99F, -0.7F}));
  EXPECT_EQ(right[0].name, "spearman");
  EXPECT_NEAR(right[0].value, 100, 1e-10);
  EXPECT_EQ(right[1].name, "pearson");
  EXPECT_LT(right[1].value, 100);
  EXPECT_NEAR(set->scores(with_cosines({-0.7F, 0.2F, 0.99F, 0.9F}))[0].value, -100, 1e-10);
  EXPECT_EQ(predictions(*set, with_cosines({1, 0, 0.5F, -1})),
            "{\"index\": 0, \"number\": 1}\n{\"index\": 1, \"number\": 0}\n{\"index\": 2, \"number\": 0.5}\n"
            "{\"index\": 3, \"number\": -1}\n");
}

TEST_F(EmbedFiles, PredictionsThatAreNoCosinesAreRefusedByTheirLine) {
  put_file(folder_ / "s.csv", "a,b,score\nrain,snow,5\nsun,fog,3\n");
  TaskReading with;
  with.label_column = "score";
  const auto score = [&](const std::string& second) {
    put_file(folder_ / "p.jsonl",
             "{\"index\": 0, \"number\": 1.0000002}\n{\"index\": 1, \"number\": " + second + "}\n");
    return message_of<UserError>(
        [&] { entry_of(TaskKind::kEmbed).scoring.score(std::vector{folder_ / "s.csv"}, folder_ / "p.jsonl", with); });
  };
  EXPECT_EQ(score("-1.0000002"), kNoError);
  for (const char* number : {"1e39", "1e999", "-1.5"}) {
    EXPECT_THAT(score(number), HasSubstr("p.jsonl:2: the number ")) << number;
  }
}

TEST_F(EmbedFiles, PairsWithoutSimilaritiesAreSearchedFor) {
  TaskReading with = reading();
  with.negative_column = "c";
  // The second texts of the first and the third example are the same, so neither is wrong for the other.
  const auto set = open_csv("a,b,c\nrain,snow,hill\nsun,fog,lake\nwind,snow,moss\n", with);
  EXPECT_THAT(set->notes(), HasSubstr("no similarities, so second texts are searched for"));
  const TaskOutputValues outputs = {
      {1, 0, /**/ 1, 0.1F, /**/ 0, 1}, {0, 1, /**/ 1, 1, /**/ 0, -1}, {1, 0.1F, /**/ 1, 0.1F, /**/ -1, 0}};
  const std::vector<TaskScore> scores = set->scores(outputs);
  EXPECT_EQ(scores[0].name, "retrieval_accuracy");
  EXPECT_NEAR(scores[0].value, 200.0 / 3, 1e-10);  // "hill" is nearer to the second than its own
  EXPECT_EQ(scores[1].name, "mean_reciprocal_rank");
  EXPECT_NEAR(scores[1].value, 100 * (1 + 0.5 + 1) / 3, 1e-10);
}

TEST(Retrieval, FindsWhatAWholeSearchFinds) {
  constexpr std::int64_t kExamples = 60, kHidden = 4;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  embed::Vectors vectors(kExamples, std::vector<float>(2 * kHidden));
  for (auto& example : vectors) {
    for (float& value : example) value = normal(random);
    for (std::size_t i = 0; i < kHidden; ++i) example[kHidden + i] = 2 * example[i] + example[kHidden + i];
  }
  TaskExamples examples{.sequences_each = 2};
  for (std::int32_t sequence = 0; sequence <= 2 * kExamples; ++sequence) examples.begins.push_back(sequence);
  for (std::int32_t sequence = 0; sequence < 2 * kExamples; ++sequence) {
    examples.ids.push_back(sequence);
    examples.seconds.push_back(1);
  }
  const auto cosine = [&](std::size_t i, std::size_t j) {
    double product = 0, a = 0, b = 0;
    for (std::size_t k = 0; k < kHidden; ++k) {
      const double x = double{vectors[i][k]}, y = double{vectors[j][kHidden + k]};
      product += x * y, a += x * x, b += y * y;
    }
    return product / std::sqrt(a * b);
  };
  double right = 0, reciprocal = 0;
  for (std::size_t i = 0; i < kExamples; ++i) {
    int rank = 1;
    for (std::size_t j = 0; j < kExamples; ++j) rank += cosine(i, j) > cosine(i, i) ? 1 : 0;
    right += rank == 1 ? 1 : 0;
    reciprocal += 1.0 / rank;
  }
  ASSERT_GT(right, 5);
  ASSERT_LT(right, kExamples - 5);
  const embed::Retrieval found = embed::retrieval(vectors, examples);
  EXPECT_NEAR(found.accuracy, right / kExamples, 1e-12);
  EXPECT_NEAR(found.reciprocal_rank, reciprocal / kExamples, 1e-12);
}

}  // namespace
}  // namespace teratron::testing
