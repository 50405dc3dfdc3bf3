// Anyone's examples: their files, their labels, and predictions with names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tasks/custom/labels.h"
#include "tasks/custom/metrics.h"
#include "tasks/custom/predictions.h"
#include "tasks/task_entry.h"
#include "tasks/task_files.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClassifyFiles : public TaskFiles {
 protected:
  fs::path file(const std::string& name, const std::string& content) const {
    put_file(folder_ / name, content);
    return folder_ / name;
  }
  custom::Table table(const std::string& name, const std::string& content,
                      const custom::Columns& columns = kUsual) const {
    return custom::read_table(std::vector{file(name, content)}, columns);
  }
  std::string table_fault(const std::string& name, const std::string& content,
                          const custom::Columns& columns = kUsual) const {
    return message_of<UserError>([&] { table(name, content, columns); });
  }
  std::unique_ptr<TaskSet> open_file(const std::string& name, const std::string& content, TaskReading reading,
                                     bool training = false) {
    reading.seq_length = 16;
    return open_task(TaskKind::kClassify, std::vector{file(name, content)}, tokenizer_, reading, training);
  }
  static TaskReading with_labels(LabelSet labels) {
    TaskReading reading;
    reading.labels = std::move(labels);
    return reading;
  }

  inline static const custom::Columns kUsual = {.text = "text", .pair = {}, .label = "label"};
};

std::vector<std::string> fields_of(const custom::Table& table) {
  std::vector<std::string> all;
  for (const custom::Row& row : table.rows)
    all.push_back(fmt::format("{}|{}|{}|{}", row.text, row.pair, row.label, row.line));
  return all;
}

TEST_F(ClassifyFiles, TablesAreReadByTheirEnding) {
  const custom::Columns pairs = {.text = "a", .pair = "b", .label = "y"};
  EXPECT_THAT(
      fields_of(table("t.csv", "\xEF\xBB\xBFy,b,a,more\r\nup,\"x, \"\"z\"\"\nw\",t,0\r\n\r\n down ,,t,\r\n", pairs)),
      ElementsAre("t|x, \"z\"\nw|up|2", "t||down|5"));
  EXPECT_THAT(fields_of(table("t.TSV", "a\tb\ty\n\"t\tu\"v\tup\n", pairs)), ElementsAre("\"t|u\"v|up|2"));
  for (const char* quotes : {"\"t\"", "\"t \"\"u\"\" v\"\tup\nsay \"no\"", "\"\"", "\"", "\"t\"\"", "\"t \"u\" v\""}) {
    EXPECT_EQ(table_fault("t.tsv", fmt::format("text\tlabel\n{}\tup\n", quotes)), kNoError) << quotes;
  }
  EXPECT_THAT(fields_of(table("t.jsonl", "{\"a\": \"t\\n\", \"b\": 1.50, \"y\": true}\n\n{\"b\": \"\", \"a\": \"u\"}\n",
                              pairs)),
              ElementsAre("t\n|1.50|true|1", "u|||3"));
  EXPECT_THAT(fields_of(table("t.json", R"([{"a": "t", "b": "u", "y": null}, {"a": "t", "b": "u", "y": 3}])", pairs)),
              ElementsAre("t|u||1", "t|u|3|2"));
  EXPECT_THAT(fields_of(table("t.csv", "text\nx\n\"\"\n")), ElementsAre("x|||2", "|||3"));
}

TEST_F(ClassifyFiles, RowsOfParquetAreThoseOfTheSameJsonLines) {
  const std::filesystem::path golden = std::filesystem::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / "parquet";
  const custom::Columns columns = {.text = "text", .pair = "language_score", .label = "dump"};
  const auto lines = fields_of(custom::read_table(std::vector{golden / "fineweb.jsonl"}, columns));
  EXPECT_EQ(lines.size(), 24U);
  EXPECT_EQ(fields_of(custom::read_table(std::vector{golden / "fineweb-zstd.parquet"}, columns)), lines);
}

TEST_F(ClassifyFiles, FaultsOfTablesNameTheLine) {
  EXPECT_THAT(table_fault("t.csv", "text;label\nx;a\n"),
              AllOf(HasSubstr("t.csv:1: the first row is one cell, 'text;label'"), HasSubstr("commas part")));
  EXPECT_THAT(table_fault("t.tsv", "text,label\nx,a\n"), HasSubstr("tabs part"));
  // As pandas writes texts with quotes in them, and csv's readers read them.
  EXPECT_THAT(table_fault("t.tsv", "text\tlabel\nplain\ta\n\"all of it\"\ta\n\"say \"\"no\"\"\"\tb\n"),
              HasSubstr("t.tsv:4: a cell stands in quotes"));
  EXPECT_THAT(table_fault("t.csv", "text,label\nx,a\ny\n"),
              AllOf(HasSubstr("t.csv:3: 1 cell, where the first row has 2"), HasSubstr("in quotes")));
  EXPECT_THAT(table_fault("t.csv", "text,label\n\"a\nb\",c\n\"d,e\nf\n"),
              HasSubstr("t.csv:4: a cell begins with a quote (\") that nothing closes"));
  EXPECT_THAT(table_fault("t.csv", "sentence,label\nx,a\n"),
              HasSubstr("t.csv:1: no column is called 'text'; name one of sentence, label with --text-column"));
  EXPECT_THAT(table_fault("t.csv", "text,label,label\nx,a,b\n"), HasSubstr("two columns are called 'label'"));
  EXPECT_THAT(table_fault("t.csv", "text,label\n"), HasSubstr("has no example"));
  EXPECT_THAT(table_fault("t.csv", ""), HasSubstr("is empty"));
  EXPECT_THAT(table_fault("t.csv", "text\n\xff\n"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(table_fault("t.txt", "text\nx\n"), HasSubstr("ends with none of .csv, .tsv, .jsonl, .json"));
  EXPECT_THAT(table_fault("t.jsonl", "{\"text\": \"a\"}\n{\"label\": \"b\"}\n"),
              HasSubstr("t.jsonl:2: there is no text under \"text\"; its keys are label (--text-column"));
  EXPECT_THAT(table_fault("t.jsonl", "{\"text\": \"a\"}\n{\"text\": [1]}\n"),
              HasSubstr("t.jsonl:2: \"text\" is no text"));
  EXPECT_THAT(table_fault("t.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\",}\n"),
              HasSubstr("t.jsonl:2: this is no JSON object"));
}

TEST_F(ClassifyFiles, LabelsAreTheNamesOfTheFilesSorted) {
  const auto names = [&](const std::string& labels, LabelKind kind = LabelKind::kAuto) {
    return custom::labels_in(table("t.csv", "label\n" + labels, {.text = {}, .pair = {}, .label = "label"}), kind);
  };
  EXPECT_THAT(names("b\na\nb\n\"\"\n").names, ElementsAre("a", "b"));
  EXPECT_THAT(names("10\n9\n-1\n").names, ElementsAre("-1", "9", "10")) << "whole numbers are names by default";
  EXPECT_THAT(names("0.0\n1.0\n").names, ElementsAre("0.0", "1.0")) << "no fraction";
  EXPECT_THAT(names("01\n1.0\n2.0\n1\n02\n").names, ElementsAre("1", "02")) << "a number is one label";
  EXPECT_THAT(names("01\n1.0\n1\n", LabelKind::kNames).names, ElementsAre("01", "1", "1.0"));
  EXPECT_THAT(names("01\n1.0\n1\nx\n").names, ElementsAre("01", "1", "1.0", "x"));
  EXPECT_TRUE(names("0.5\n1\n").are_numbers);
  EXPECT_THAT(names("0.5\n1\nx\n", LabelKind::kNames).names, ElementsAre("0.5", "1", "x"));
  for (const std::string label : {"x", "nan", "1e39", "0,5"}) {  // a gap or a slip in a column of numbers
    EXPECT_THAT(message_of<UserError>([&] { names("0.5\n1\n\"" + label + "\"\n"); }),
                AllOf(HasSubstr("t.csv:4: the label '" + label + "' is no number, and '0.5' of another example is one"),
                      HasSubstr("--labels names")));
  }
  EXPECT_TRUE(names("3\n1\n", LabelKind::kNumbers).are_numbers);
  EXPECT_THAT(names("0.5\n1\n", LabelKind::kNames).names, ElementsAre("0.5", "1"));
  EXPECT_THAT(message_of<UserError>([&] { names("a\na\n"); }), HasSubstr("every example in"));
  EXPECT_THAT(message_of<UserError>([&] { names("1\n1.0\n"); }), HasSubstr("has the label '1'"));
  EXPECT_THAT(message_of<UserError>([&] { names("\"\"\n\"\"\n"); }), HasSubstr("--label-column (there are label)"));
  EXPECT_THAT(message_of<UserError>([&] { names("1\nnan\n", LabelKind::kNumbers); }),
              HasSubstr("t.csv:3: the label 'nan' is no number, as --labels numbers needs"));
  EXPECT_EQ(custom::number_of("1e39"), std::nullopt) << "beyond fp32";
}

TEST_F(ClassifyFiles, ALabelThatTheModelDoesNotKnowIsNamedWithItsLine) {
  EXPECT_THAT(
      message_of<UserError>([&] {
        open_file("dev.csv", "text,label\nrain,a\nsnow,c\n", with_labels({.are_numbers = false, .names = {"a", "b"}}));
      }),
      HasSubstr("dev.csv:3: 'c' is none of the model's labels a, b"));
  EXPECT_THAT(message_of<UserError>([&] {
                open_file("dev.csv", "text,label\nrain,a\n", with_labels({.are_numbers = true, .names = {}}));
              }),
              HasSubstr("dev.csv:2: the label 'a' is no number, as the model learns"));
}

// pandas writes a column of whole numbers with gaps as 1.0, 0.0.
TEST_F(ClassifyFiles, ALabelIsTheModelsThatIsTheSameNumber) {
  const std::string text = "text,label\nrain,1.0\nsnow,0\nsun,01\n";
  const auto set = open_file("dev.csv", text, with_labels({.are_numbers = false, .names = {"0", "1"}}));
  EXPECT_THAT(set->examples().labels, ElementsAre(1, 0, 1));
  const auto apart = open_file("dev.csv", text, with_labels({.are_numbers = false, .names = {"0", "01", "1", "1.0"}}));
  EXPECT_THAT(apart->examples().labels, ElementsAre(3, 0, 1)) << "names as they are count first";
  put_file(folder_ / "p.jsonl", predictions(*set, {{0, 1}, {1, 0}, {1, 0}}));
  const ScoreReport report =
      entry_of(TaskKind::kClassify).scoring.score(std::vector{folder_ / "dev.csv"}, folder_ / "p.jsonl", TaskReading());
  EXPECT_NEAR(nlohmann::json::parse(report.json)["accuracy"].get<double>(), 200.0 / 3, 1e-9);
}

TEST_F(ClassifyFiles, EqualNumbersAreOneLabelThatNoPredictionHas) {
  const auto set = open_file("dev.csv", "text,label\nrain,1\nsnow,1.0\nsun,2\n",
                             with_labels({.are_numbers = false, .names = {"1", "2"}}));
  put_file(folder_ / "p.jsonl", predictions(*set, {{0, 1}, {0, 1}, {0, 1}}));
  const ScoreReport report =
      entry_of(TaskKind::kClassify).scoring.score(std::vector{folder_ / "dev.csv"}, folder_ / "p.jsonl", TaskReading());
  EXPECT_NEAR(nlohmann::json::parse(report.json)["f1_macro"].get<double>(), (0 + 50.0) / 2, 1e-9) << report.json;
  TaskReading names;
  names.label_kind = LabelKind::kNames;
  const ScoreReport apart =
      entry_of(TaskKind::kClassify).scoring.score(std::vector{folder_ / "dev.csv"}, folder_ / "p.jsonl", names);
  EXPECT_NEAR(nlohmann::json::parse(apart.json)["f1_macro"].get<double>(), (0 + 0 + 50.0) / 3, 1e-9) << apart.json;
}

TEST_F(ClassifyFiles, SingleTextsAndPairsAreFramedAndCutAtTheirEnds) {
  const auto single = open_file("t.csv", "text,label\nrain snow,a\n,b\n", {});
  const std::vector<std::int32_t> tokens = tokenizer_.encode("rain snow");
  EXPECT_THAT(single->examples().sequence(0), ElementsAre(2, tokens[0], tokens[1], 3));
  EXPECT_THAT(single->examples().sequence(1), ElementsAre(2, 3));
  EXPECT_EQ(single->examples().second(0), 4) << "all token types are 0";
  EXPECT_EQ(single->notes(), "2 texts; 1 empty text; 1 a; 1 b");
  std::string long_text = "rain";
  for (int i = 0; i < 30; ++i) long_text += " snow";
  const auto cut = open_file("t.csv", "text,label\n" + long_text + ",a\nrain,b\n", {});
  EXPECT_EQ(cut->examples().longest(), 16);
  EXPECT_EQ(cut->examples().sequence(0).back(), 3);
  EXPECT_THAT(cut->notes(), HasSubstr("1 cut to 16 tokens"));
  TaskReading pairs;
  pairs.pair_column = "other";
  const auto both = open_file("t.csv", "text,other,label\nrain,snow,a\nrain,,b\n", pairs);
  EXPECT_THAT(both->examples().sequence(0), ::testing::ElementsAreArray(framed("rain", "snow")));
  EXPECT_THAT(both->examples().sequence(1), ::testing::ElementsAreArray(framed("rain", "")));
}

TEST_F(ClassifyFiles, RowsWithoutALabelAreLeftOutOfTrainingAndOfScores) {
  const std::string text = "text,label\nrain,a\nsnow,\nsun,b\n";
  EXPECT_THAT(open_file("t.csv", text, {}, true)->examples().labels, ElementsAre(0, 1));
  const auto set = open_file("t.csv", text, {});
  EXPECT_THAT(set->examples().labels, ElementsAre(0, kUnknownLabel, 1));
  EXPECT_EQ(set->scores({{1, 0}, {1, 0}, {1, 0}})[0].value, 50);
  EXPECT_FALSE(
      open_file("t.csv", "text\nrain\n", with_labels({.are_numbers = false, .names = {"a", "b"}}))->has_labels());
  EXPECT_THAT(message_of<UserError>([&] { open_file("t.csv", "text\nrain\n", {}, true); }),
              HasSubstr("--label-column"));
}

TEST_F(ClassifyFiles, PredictionsHaveNamesAndComeBackFromScore) {
  const auto set = open_file("t.csv", "text,label\nrain,\"the \"\"a\"\"\"\nsnow,b\n", {});
  const TaskOutputValues outputs = {{0, 1}, {-50, 50}};
  const std::string written = predictions(*set, outputs);
  const auto line = nlohmann::json::parse(written.substr(0, written.find('\n')));
  EXPECT_EQ(line["label"], "the \"a\"");
  EXPECT_NEAR(line["probabilities"]["the \"a\""].get<double>(), 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(line["index"], 0);
  put_file(folder_ / "p.jsonl", written);
  const auto score = [&] {
    return entry_of(TaskKind::kClassify)
        .scoring.score(std::vector{folder_ / "t.csv"}, folder_ / "p.jsonl", TaskReading());
  };
  EXPECT_EQ(nlohmann::json::parse(score().json)["accuracy"], 50);
  put_file(folder_ / "p.jsonl", written.substr(0, written.find('\n') + 1));
  EXPECT_THAT(message_of<UserError>(score), HasSubstr("has no prediction for row 1 of 2"));
  put_file(folder_ / "p.jsonl", written + written);
  EXPECT_THAT(message_of<UserError>(score), HasSubstr("p.jsonl:3: row 0 is predicted twice"));
  put_file(folder_ / "p.jsonl", written + "{\"index\": 2, \"label\": \"b\"}");
  EXPECT_THAT(message_of<UserError>(score), HasSubstr("p.jsonl:3: row 2 is predicted, and the data have 2"));
  put_file(folder_ / "p.jsonl", "{\"index\": 0}");
  EXPECT_THAT(message_of<UserError>(score), HasSubstr("p.jsonl:1: this is no prediction"));
  put_file(folder_ / "p.jsonl", R"({"index": 0, "label": "\ud83d"})" + written.substr(written.find('\n')));
  EXPECT_EQ(nlohmann::json::parse(score().json)["accuracy"], 0) << "half of a surrogate pair is a wrong label";
}

TEST_F(ClassifyFiles, NumbersAreScoredByTheirCorrelationsAndError) {
  const auto set = open_file("t.csv", "text,label\nrain,-1.5\nsnow,2\nsun,\n", {}, false);
  EXPECT_THAT(set->notes(), HasSubstr("labels are numbers"));
  EXPECT_EQ(number_of_label(set->examples().labels[0]), -1.5F) << "a negative number is a label";
  EXPECT_EQ(set->examples().labels[2], kUnknownLabel);
  const std::vector<TaskScore> scores = set->scores({{0}, {3}, {7}});
  EXPECT_EQ(scores[0].name, "spearman");
  EXPECT_NEAR(scores[0].value, 100, 1e-9);
  EXPECT_NEAR(scores[1].value, 100, 1e-9);
  EXPECT_NEAR(scores[2].value, (2.25 + 1) / 2, 1e-9);
  EXPECT_EQ(predictions(*set, {{0.5}, {3}, {-7}}),
            "{\"index\": 0, \"number\": 0.5}\n{\"index\": 1, \"number\": 3}\n{\"index\": 2, \"number\": -7}\n");
  EXPECT_THROW(set->scores({{0, 1}, {3, 1}, {7, 1}}), InternalError);
  put_file(folder_ / "p.jsonl", "{\"index\": 0, \"number\": 1}\n{\"index\": 1, \"number\": 1e39}\n");
  EXPECT_THAT(message_of<UserError>([&] { custom::read_predictions(folder_ / "p.jsonl", 2); }),
              HasSubstr("p.jsonl:2: the number 1e+39 is not from"));
  put_file(folder_ / "p.jsonl", "{\"index\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}\n");
  EXPECT_THAT(message_of<UserError>([&] { custom::read_predictions(folder_ / "p.jsonl", 2); }),
              HasSubstr("p.jsonl:1: this is no prediction"));
}

TEST(ClassifyMetrics, AreThoseOfHandMadeCases) {
  const std::vector<std::int32_t> labels = {0, 0, 1, 1}, said = {0, 1, 1, 1}, one = {1, 1, 1, 1};
  const custom::LabelMetrics metrics = custom::label_metrics(labels, said, 3);
  EXPECT_DOUBLE_EQ(metrics.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(metrics.f1_macro, (2.0 / 3 + 0.8) / 2) << "label 2, which nobody has, does not count";
  EXPECT_DOUBLE_EQ(metrics.matthews, 1 / std::sqrt(3.0));
  EXPECT_EQ(custom::label_metrics(labels, one, 2).matthews, 0);
  EXPECT_DOUBLE_EQ(custom::number_metrics(std::vector<double>{1, 2, 3}, std::vector<double>{3, 10, 2}).spearman, -0.5);
  EXPECT_EQ(custom::number_metrics(std::vector<double>{1, 2, 3}, std::vector<double>{2, 2, 2}).pearson, 0);
}

}  // namespace
}  // namespace teratron::testing
