// MNLI and QQP: their files and scores, by hand, by direct counts over random files, and on the shared data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/compressed.h"
#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/damage.h"
#include "tasks/glue/score.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kMnliHeader = "index\tgenre\tsentence1_parse\tsentence1\tsentence2\tlabel1\tgold_label\n";
const std::string kQqpHeader = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n";

class GlueFiles : public ::testing::Test {
 protected:
  glue::Dataset data(const std::string& text, glue::Task task) {
    put_file(folder_ / "dev.tsv", text);
    return glue::read_dataset(folder_ / "dev.tsv", task);
  }
  glue::Predictions predictions(const std::string& text, glue::Task task) {
    put_file(folder_ / "MNLI-m.tsv", text);
    return glue::read_predictions(folder_ / "MNLI-m.tsv", task);
  }
  std::string refusal(const std::string& text, glue::Task task) {
    return message_of<UserError>([&] { data(text, task); });
  }
  std::string refusal_of_predictions(const std::string& text, glue::Task task) {
    return message_of<UserError>([&] { predictions(text, task); });
  }
  TemporaryFolder folder_;
};

TEST_F(GlueFiles, ColumnsAreFoundByTheHeadersNames) {
  const glue::Dataset mnli = data(kMnliHeader +
                                      "0\tfiction\t( a )\tIt rains.\tIt is wet.\tneutral\tentailment\n"
                                      "1\tfiction\t( a )\tHe \"left.\tHe stayed.\tneutral\tcontradiction\r\n",
                                  glue::Task::kMnli);
  ASSERT_EQ(mnli.pairs.size(), 2U);
  EXPECT_EQ(mnli.pairs[0].first, "It rains.");
  EXPECT_EQ(mnli.pairs[0].second, "It is wet.");
  EXPECT_EQ(mnli.pairs[0].label, 1);
  EXPECT_EQ(mnli.pairs[1].first, "He \"left.");  // a quote is text, and the line's end is none of the label
  EXPECT_EQ(mnli.pairs[1].label, 0);
  const glue::Dataset qqp =
      data("is_duplicate\tquestion2\tquestion1\n1\tWhat?\tWhat is it?\n0\tWho?\tWhy?\n", glue::Task::kQqp);
  EXPECT_EQ(qqp.pairs[0].first, "What is it?");
  EXPECT_EQ(qqp.pairs[0].second, "What?");
  EXPECT_THAT(glue::count_labels(qqp), ElementsAre(1, 1));
}

TEST_F(GlueFiles, ThreeColumnsWithoutAHeaderAreLabelPremiseAndHypothesis) {
  const glue::Dataset mnli =
      data("\xEF\xBB\xBFneutral\tIt rains.\tHe left.\n\ncontradiction\tNo.\tYes.", glue::Task::kMnli);
  ASSERT_EQ(mnli.pairs.size(), 2U);
  EXPECT_EQ(mnli.pairs[0].label, 2);
  EXPECT_EQ(mnli.pairs[0].first, "It rains.");
  EXPECT_EQ(mnli.pairs[1].second, "Yes.");
  EXPECT_EQ(mnli.pairs[1].index, 1);  // a blank line is no row
  EXPECT_THAT(glue::count_labels(mnli), ElementsAre(1, 0, 1));
}

TEST_F(GlueFiles, ATestSetHasNoLabelsAndIsNotScored) {
  const glue::Dataset qqp = data("id\tquestion1\tquestion2\n0\tWhat?\tWho?\n", glue::Task::kQqp);
  EXPECT_FALSE(qqp.pairs[0].label);
  EXPECT_THAT(glue::count_labels(qqp), ElementsAre(0, 0));
  EXPECT_THAT(message_of<UserError>([&] { glue::score(qqp, {}); }), HasSubstr("no labels"));
}

TEST_F(GlueFiles, RowsThatNobodyCanUseAreCountedAndKeepTheirIndex) {
  const glue::Dataset mnli =
      data("-\ta\tb\nneutral\ta\tb\nentailment\t \tb\nneutral\ta\t\nentailment\ta\tb\n", glue::Task::kMnli);
  EXPECT_EQ(mnli.rows, 5);
  EXPECT_EQ(mnli.skipped.without_gold, 1);
  EXPECT_EQ(mnli.skipped.empty, 2);
  ASSERT_EQ(mnli.pairs.size(), 2U);
  EXPECT_EQ(mnli.pairs[0].index, 1);
  EXPECT_EQ(mnli.pairs[1].index, 4);
  const glue::Dataset qqp = data(kQqpHeader + "9\t1\t2\ta\n8\t1\t2\ta\tb\t1\n7\t1\t2\ta\tb\t1\tc\n", glue::Task::kQqp);
  EXPECT_EQ(qqp.skipped.wrong_columns, 2);
  ASSERT_EQ(qqp.pairs.size(), 1U);
  EXPECT_EQ(qqp.pairs[0].index, 1);  // the row, not the id
  // Python, and so Megatron-LM, ends a row at a carriage return alone.
  EXPECT_EQ(data(kQqpHeader + "8\t1\t2\ta\tb\t1\r \t\n7\t1\t2\ta\tb\t1\n", glue::Task::kQqp).pairs.size(), 2U);
}

TEST_F(GlueFiles, NameFileAndLineOfAFault) {
  const std::string right = "neutral\ta\tb\n";
  EXPECT_THAT(refusal(right + "\n" + right + "maybe\ta\tb\n", glue::Task::kMnli),
              AllOf(HasSubstr("dev.tsv:4: 'maybe' is none of the labels contradiction, entailment, neutral")));
  EXPECT_THAT(refusal(right + "neutral\ta\n", glue::Task::kMnli),
              HasSubstr("dev.tsv:2: 2 columns, where the first line has 3"));
  EXPECT_THAT(refusal(kMnliHeader + "0\ta\tb\n", glue::Task::kMnli), HasSubstr("dev.tsv:2: 3 columns"));
  EXPECT_THAT(refusal("a\tb\n", glue::Task::kMnli), HasSubstr("dev.tsv:1: this is neither a header"));
  EXPECT_THAT(refusal("label\tpremise\thypothesis\n" + right, glue::Task::kMnli),
              HasSubstr("dev.tsv:1: this is neither"));
  EXPECT_THAT(refusal(right, glue::Task::kQqp), HasSubstr("dev.tsv:1: the columns' names are missing"));
  EXPECT_THAT(refusal(kQqpHeader + "0\t1\t2\ta\tb\t2\n", glue::Task::kQqp),
              HasSubstr("dev.tsv:2: '2' is none of the labels 0, 1"));
  EXPECT_THAT(refusal("", glue::Task::kMnli), HasSubstr("is empty"));
  EXPECT_THAT(refusal("\n \n", glue::Task::kQqp), HasSubstr("is empty"));
  EXPECT_THAT(refusal("-\ta\tb\n", glue::Task::kMnli), HasSubstr("of 1 row 1 have the label '-'"));
  EXPECT_THAT(refusal(right + std::string(1, '\0'), glue::Task::kMnli), HasSubstr("not text"));
  EXPECT_THAT(refusal(right + "neutral\tcaf\xe9\tb\n", glue::Task::kMnli),
              AllOf(HasSubstr("is not UTF-8: 0xe9 at byte 23"), Not(HasSubstr("--format"))));
  EXPECT_THAT(message_of<UserError>([&] { glue::read_dataset(folder_ / "none.tsv", glue::Task::kMnli); }),
              HasSubstr("none.tsv"));
}

TEST_F(GlueFiles, WrongPredictionsAreReportedByLine) {
  const std::string header = "index\tprediction\n";
  EXPECT_EQ(predictions(header + "1\tneutral\n0\tentailment\n", glue::Task::kMnli),
            (glue::Predictions{{0, 1}, {1, 2}}));
  EXPECT_EQ(predictions(header + "3\t0\n", glue::Task::kQqp), (glue::Predictions{{3, 0}}));
  EXPECT_THAT(refusal_of_predictions("0\tneutral\n", glue::Task::kMnli),
              HasSubstr("MNLI-m.tsv:1: predictions begin with"));
  EXPECT_THAT(refusal_of_predictions(header + "0\t1\n", glue::Task::kMnli),
              HasSubstr("MNLI-m.tsv:2: '1' is none of the labels"));
  EXPECT_THAT(refusal_of_predictions(header + "0\tneutral\n", glue::Task::kQqp),
              HasSubstr("'neutral' is none of the labels"));
  EXPECT_THAT(refusal_of_predictions(header + "0\t1\n0\t0\n", glue::Task::kQqp),
              HasSubstr("MNLI-m.tsv:3: the row 0 is predicted twice"));
  EXPECT_THAT(refusal_of_predictions(header + "0\t1\t1\n", glue::Task::kQqp), HasSubstr("MNLI-m.tsv:2: 3 columns"));
  for (const char* index : {"-1", "x", "", "1.0", "99999999999999999999", " 1"}) {
    EXPECT_THAT(refusal_of_predictions(header + index + "\t1\n", glue::Task::kQqp),
                HasSubstr("is not the index of a row"));
  }
  EXPECT_THAT(refusal_of_predictions("", glue::Task::kQqp), HasSubstr("is empty"));
}

TEST_F(GlueFiles, PlantedPredictionsScore) {
  const glue::Dataset qqp = data(kQqpHeader +
                                     "9\t1\t2\ta\tb\t1\n8\t1\t2\ta\tb\t1\n7\t1\t2\ta\tb\t1\n6\t1\t2\ta\tb\t0\n"
                                     "5\t1\t2\ta\tb\t0\n",
                                 glue::Task::kQqp);
  const glue::Scores scores = glue::score(qqp, {{0, 1}, {1, 0}, {3, 1}, {4, 0}});
  EXPECT_EQ(scores.right, 2);
  EXPECT_EQ(scores.without_prediction, 1);
  EXPECT_DOUBLE_EQ(scores.accuracy, 40);
  EXPECT_DOUBLE_EQ(scores.f1, 40);  // one of two taken for duplicates is one, one of three is found
  EXPECT_DOUBLE_EQ(glue::score(qqp, {{0, 0}}).f1, 0);
  EXPECT_THAT(message_of<UserError>([&] { glue::score(qqp, {{5, 1}}); }), HasSubstr("the row 5 is predicted"));
  const glue::Dataset mnli = data("neutral\ta\tb\n-\ta\tb\nentailment\ta\tb\n", glue::Task::kMnli);
  EXPECT_DOUBLE_EQ(glue::score(mnli, {{0, 2}, {1, 0}, {2, 2}}).accuracy, 50);
  EXPECT_DOUBLE_EQ(glue::score(mnli, {}).accuracy, 0);
}

// A file of random rows, what a direct count says of random predictions to it, and these as they come back from a file.
TEST_F(GlueFiles, ScoresAreDirectCountsOverRandomFiles) {
  RandomSequence random({.seed = 3});
  for (int trial = 0; trial < 300; ++trial) {
    const glue::Task task = trial % 2 == 0 ? glue::Task::kMnli : glue::Task::kQqp;
    const auto labels = glue::labels_of(task);
    std::string text = task == glue::Task::kMnli ? kMnliHeader : kQqpHeader;
    glue::Predictions given;
    int pairs = 0, right = 0, skipped = 0, true_duplicates = 0, found = 0, taken = 0;
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random.below(40));
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto label = static_cast<int>(random.below(labels.size()));
      const auto prediction = static_cast<int>(random.below(labels.size()));
      const bool is_skipped = row > 0 && random.below(5) == 0, is_predicted = random.below(8) != 0;
      const std::string name(labels[static_cast<std::size_t>(label)]);
      if (task == glue::Task::kMnli) {
        text += fmt::format("{}\tg\t()\ta {}\tb\t{}\t{}\n", row, row, labels[0], is_skipped ? "-" : name);
      } else {
        text += fmt::format("{}\t1\t2\ta {}\tb\t{}\n", random.below(1000), row, is_skipped ? name + "\t" : name);
      }
      if (is_predicted) given[row] = prediction;
      if (is_skipped) {
        ++skipped;
        continue;
      }
      ++pairs;
      if (is_predicted && prediction == label) ++right;
      if (label == 1) ++true_duplicates;
      if (is_predicted && prediction == 1) ++taken;
      if (is_predicted && prediction == 1 && label == 1) ++found;
    }
    const glue::Dataset dataset = data(text, task);
    EXPECT_EQ(std::ssize(dataset.pairs), pairs);
    EXPECT_EQ(dataset.skipped.without_gold + dataset.skipped.wrong_columns, skipped);
    glue::write_predictions(folder_ / "p.tsv", given, task);
    const glue::Predictions read = glue::read_predictions(folder_ / "p.tsv", task);
    ASSERT_EQ(read, given);
    const glue::Scores scores = glue::score(dataset, read);
    EXPECT_DOUBLE_EQ(scores.accuracy, 100.0 * right / pairs);
    if (found == 0) {
      EXPECT_EQ(scores.f1, 0);
    } else {
      const double precision = double(found) / taken, recall = double(found) / true_duplicates;
      EXPECT_NEAR(scores.f1, 100 * 2 * precision * recall / (precision + recall), 1e-9);  // rounding of the means
    }
  }
}

TEST_F(GlueFiles, PredictionsAreWrittenAsTheSiteTakesThem) {
  glue::write_predictions(folder_ / "p.tsv", {{1, 0}, {0, 2}}, glue::Task::kMnli);
  EXPECT_EQ(bytes_of_file(folder_ / "p.tsv"), "index\tprediction\n0\tneutral\n1\tcontradiction\n");
}

TEST_F(GlueFiles, CompressedFilesAreRead) {
  EXPECT_EQ(data(gzip("neutral\ta\tb\n"), glue::Task::kMnli).pairs.size(), 1U);
  EXPECT_EQ(data(zstd("neutral\ta\tb\n"), glue::Task::kMnli).pairs.size(), 1U);
}

// The counts of the labels are those of `cut -f1 | sort | uniq -c`.
TEST(GlueSharedData, TheMnliSubsetHasWhatItsSourceSays) {
  const fs::path folder = fs::path(TERATRON_SOURCE_DIR) / "../shared/data/mnli-subset";
  if (!fs::exists(folder)) GTEST_SKIP() << "../shared/data/mnli-subset is absent";
  std::vector<std::int64_t> sums(3);
  for (const char* name : {"mnli_matched.tsv", "mnli_mismatched.tsv"}) {
    const glue::Dataset dataset = glue::read_dataset(folder / name, glue::Task::kMnli);
    EXPECT_EQ(dataset.pairs.size(), 1000U);
    EXPECT_EQ(dataset.rows, 1000);
    glue::Predictions right;
    for (const glue::Pair& pair : dataset.pairs) right[pair.index] = pair.label.value();
    EXPECT_DOUBLE_EQ(glue::score(dataset, right).accuracy, 100);
    const auto counts = glue::count_labels(dataset);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += counts[i];
  }
  EXPECT_THAT(sums, ElementsAre(651, 719, 630));
}

}  // namespace
}  // namespace teratron::testing
