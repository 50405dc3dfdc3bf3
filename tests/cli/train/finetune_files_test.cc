// How `teratron finetune` and `eval TASK` read files: columns and labels of one's own, windows, and that an evaluation
// reads as its run did.
#include "cli/finetune_runs.h"

namespace teratron::testing {
namespace {

// Texts of a table, some of which are scored by their length.
TEST_F(FinetuneCommands, NumbersAreLearnedAndLabelsThatDoNotFitAreRefused) {
  const auto command = [&](const std::string& train, const std::string& valid, const Words& more = {}) {
    Words words = finetune(TaskKind::kClassify, more);
    put_file(path("train.csv"), train);
    put_file(path("valid.csv"), valid);
    for (std::string& word : words) {
      for (const char* set : {"train", "valid"}) {
        if (word == path(fmt::format("{}.jsonl", set))) word = path(fmt::format("{}.csv", set));
      }
      if (word == path("test.jsonl")) word = path("valid.csv");
    }
    return words;
  };
  std::string numbers = "text,label\n";
  for (int words = 1; words < 9; ++words) {
    std::string text = "rain";
    for (int more = 1; more < words; ++more) text += " rain";
    numbers += fmt::format("{},{}\n", text, 0.25 * words - 1);
  }
  const auto json = json_of(command(numbers, numbers, {"--epochs", "60"}));
  EXPECT_GT(json["runs"][0]["valid"]["spearman"].get<double>(), 80);
  EXPECT_LT(json["runs"][0]["valid"]["mean_squared_error"].get<double>(), 0.6);
  const Outcome again = must(command(numbers, numbers, {"--epochs", "60"}));
  EXPECT_THAT(again.errors, AllOf(Not(HasSubstr("validates on nothing")),
                                  HasSubstr("to validate on: 8 texts; labels are numbers; 8 of them trained on, too"),
                                  HasSubstr("to test on: 8 of 8 are trained on, too")));
  EXPECT_EQ(json_of(command(numbers, numbers, {"--epochs", "60"}))["runs"], json["runs"]) << "a finished run goes on";
  const auto evaluated = json_of({"eval", "classify", "--load", path("run") + "/best", "--data", path("valid.csv")});
  const double pearson = json["runs"][0]["valid"]["pearson"];
  EXPECT_NEAR(evaluated["pearson"].get<double>(), pearson, 0.01) << "other batches round otherwise";

  const auto fault = [&](const std::string& train, const std::string& valid, const Words& more = {}) {
    fs::remove_all(path("run"));
    const std::string errors = refused(command(train, valid, more));
    EXPECT_FALSE(fs::exists(path("run")));
    return errors;
  };
  const std::string names = "text,label\nrain,a\nsnow,b\n";
  EXPECT_THAT(fault(names, "text,label\nrain,a\nsnow,c\n"),
              HasSubstr("valid.csv:3: 'c' is none of the model's labels a, b"));
  EXPECT_THAT(fault("text,label\nrain,a\nsnow,a\n", names), HasSubstr("has the label 'a'; a classifier"));
  EXPECT_THAT(fault("text,label\nrain,Yes\nsnow,yes\n", names), HasSubstr("has the labels 'Yes' and 'yes'"));
  EXPECT_THAT(fault(names, names, {"--labels", "numbers"}), HasSubstr("train.csv:2: the label 'a' is no number"));
  EXPECT_THAT(fault(names, "text\nrain\n"), HasSubstr("--valid-data has no labels to score by"));
  EXPECT_THAT(fault(names, names, {"--text-column", "body"}),
              HasSubstr("no column is called 'body'; name one of text, label"));
  fs::create_directories(path("run"));
  refused({"eval", "classify", "--load", path("words"), "--data", path("valid.csv")});
}

TEST_F(FinetuneCommands, ColumnsOfARunAreThoseOfItsEvaluation) {
  Words words = finetune(TaskKind::kClassify,
                         {"--epochs", "1", "--text-column", "one", "--pair-column", "other", "--label-column", "kind"});
  const std::string table =
      "text,one,other,kind,label\n1,rain,snow,a,b\n2,rain,rain,b,a\n3,snow,sun,a,a\n4,sun,sun,b,b\n";
  put_file(path("pairs.csv"), table);
  for (std::string& word : words) {
    if (word.ends_with(".jsonl")) word = path("pairs.csv");
  }
  const auto trained = json_of(words)["runs"][0]["valid"];
  const Words eval = {"eval", "classify", "--load", path("run") + "/best", "--data", path("pairs.csv")};
  const auto evaluated = json_of(eval);
  EXPECT_EQ(evaluated["accuracy"], trained["accuracy"]);
  EXPECT_EQ(
      json_of(with(eval, {"--text-column", "one", "--pair-column", "other", "--label-column", "kind"}))["f1_macro"],
      evaluated["f1_macro"]);
  // Flags come first.
  EXPECT_THAT(refused(with(eval, {"--pair-column", "third"})), HasSubstr("no column is called 'third'"));
  const auto single = json_of(with(eval, {"--pair-column=", "--predictions", path("single")}));
  succeed(with(eval, {"--predictions", path("pairs")}));
  EXPECT_NE(read_file(path("single")), read_file(path("pairs")));
}

// Flags by which a run read paragraphs and answers are its evaluation's, too: thresholds with which there is never an
// answer and always one.
TEST_F(FinetuneCommands, WindowsAndAnswersOfARunAreThoseOfItsEvaluation) {
  const Words reading = words_of("--epochs 1 --max-answer-length 1 --max-query-length 2 --doc-stride 7 --n-best 30");
  for (const char* threshold : {"-1000", "1000"}) {
    SCOPED_TRACE(threshold);
    fs::remove_all(path("run"));
    const Words run = finetune(TaskKind::kSquad2, with(reading, {"--null-score-diff-threshold", threshold}));
    const auto trained = json_of(run)["runs"][0]["valid"];
    const Words eval = {
        "eval",        "squad2",        "--load",    path("run") + "/best", "--data", path("valid.jsonl"),
        "--overwrite", "--predictions", path("said")};
    EXPECT_EQ(json_of(eval)["f1"], trained["f1"]);
    EXPECT_EQ(read_file(path("said")), read_file(path("run") + "/predictions-valid.json"));
    succeed(with(eval, {"--null-score-diff-threshold", threshold[0] == '-' ? "1000" : "-1000"}));
    EXPECT_NE(read_file(path("said")), read_file(path("run") + "/predictions-valid.json")) << "flags come first";
  }
}

// Columns of CoNLL files are a run's, too; those of JSON lines have other names.
TEST_F(FinetuneCommands, ColumnsOfWordsAreARunsInFilesOfItsForm) {
  std::string rows, lines;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string word(kTaskWords[i]), label = i % 3 == 0 ? "B-life" : "O";
    rows += fmt::format("no {} {} I-last\n\n", word, label);
    lines += fmt::format("{{\"tokens\": [\"{}\"], \"ner_tags\": [\"{}\"]}}\n", word, label);
  }
  put_file(path("words.conll"), rows);
  Words words = finetune(TaskKind::kTag, {"--text-column", "2", "--label-column", "3"});
  for (std::string& word : words) {
    if (word.ends_with(".jsonl")) word = path("words.conll");
  }
  put_file(path("words.jsonl"), lines);
  const auto run = json_of(words)["runs"][0]["valid"];
  for (const char* file : {"words.conll", "words.jsonl"}) {
    const auto json = json_of({"eval", "tag", "--load", path("run") + "/best", "--data", path(file)});
    EXPECT_EQ(json["accuracy"], run["accuracy"]) << file;
    EXPECT_EQ(json["f1"], run["f1"]) << file;
  }
}

// Files with numbers for labels, and with their names.
TEST_F(FinetuneCommands, LabelsOfWordsHaveNamesInEitherFormat) {
  std::string numbers, names;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string word = kTaskWords[i];
    const bool lives = i % 3 == 0;
    numbers += fmt::format("{{\"words\": [\"rain.\", \"{}\"], \"tags\": [0, {}]}}\n", word, lives ? 2 : 0);
    names += fmt::format("rain. NN O\n{} NN {}\n\n", word, lives ? "B-life" : "O");
  }
  const Words words = with(finetune(TaskKind::kTag, {"--layernorm-placement", "post", "--text-column", "words"}),
                           {"--label-column", "tags", "--label-names", "O", "B-place", "B-life"});
  const auto of = [&](const std::string& train, const std::string& valid) {
    put_file(path("numbers.jsonl"), train);
    put_file(path("valid.jsonl"), valid);
    return with(words, {"--train-data", path("numbers.jsonl"), "--valid-data", path("valid.jsonl"), "--test-data",
                        path("valid.jsonl")});
  };
  const auto json = json_of(of(numbers, numbers));
  put_file(path("names.conll"), names);
  const auto evaluated = json_of({"eval", "tag", "--load", path("run") + "/best", "--data", path("names.conll"),
                                  "--predictions", path("said.conll")});
  EXPECT_EQ(evaluated["f1"], json["runs"][0]["valid"]["f1"]);
  EXPECT_EQ(evaluated["accuracy"], json["runs"][0]["valid"]["accuracy"]);
  EXPECT_THAT(read_file(path("said.conll")), StartsWith("rain.\t"));
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run") + "/best", path("hf")});
  const auto config = Json::parse(read_file(path("hf") + "/config.json"));
  EXPECT_EQ(config["architectures"][0], "BertForTokenClassification");
  EXPECT_EQ(config["id2label"], (Json{{"0", "O"}, {"1", "B-place"}, {"2", "B-life"}}));
  EXPECT_EQ(json_of({"eval", "tag", "--load", path("hf"), "--data", path("names.conll")})["f1"], evaluated["f1"]);

  const auto fault = [&](const std::string& train, const std::string& valid) {
    fs::remove_all(path("run"));
    const std::string errors = refused(of(train, valid));
    EXPECT_FALSE(fs::exists(path("run")));
    return errors;
  };
  EXPECT_THAT(fault(numbers, numbers + "{\"words\": [\"sun\"], \"tags\": [\"B-x\"]}\n"),
              HasSubstr("valid.jsonl:13: 'B-x' is none of the model's labels O, B-place, B-life"));
  EXPECT_THAT(fault(numbers + "{\"words\": [\"sun\"], \"tags\": [3]}\n", numbers),
              HasSubstr("numbers.jsonl:13: \"tags\" has the number 3, and there are 3 names"));
  EXPECT_THAT(fault(numbers, "{\"words\": [\"sun\"]}\n"), HasSubstr("--valid-data has no labels to score by"));
  EXPECT_THAT(refused(with(of(numbers, numbers), {"--label-names", "O", "B-place", "O"})),
              HasSubstr("--label-names has 'O' twice"));
  put_file(path("table.csv"), "text,label\nrain,O\n");
  EXPECT_THAT(refused({"eval", "classify", "--load", path("hf"), "--data", path("table.csv")}),
              HasSubstr("tells no labels apart; `teratron finetune --task classify --load"));
  put_file(path("names.conll"), names + "sun NN B-thing\n");
  EXPECT_THAT(refused({"eval", "tag", "--load", path("hf"), "--data", path("names.conll")}),
              HasSubstr("names.conll:37: 'B-thing' is none of the model's labels"));
}

}  // namespace
}  // namespace teratron::testing
