// `teratron finetune` and `eval TASK` end to end on synthetic sets: what they keep and say, medians and ensembles,
// going on, and how they refuse.

#include <algorithm>

#include "cli/binary.h"
#include "tasks/synthetic_tasks.h"
#include "tasks/task_entry.h"

namespace teratron::testing {
namespace {

const Words kTinyBert =
    words_of("--model bert-tiny --num-layers 2 --hidden-size 24 --num-attention-heads 3 --seq-length 24");

class FinetuneCommands : public FolderTest {
 protected:
  void SetUp() override {
    fs::create_directories(path("words"));
    put_file(path("words") + "/vocab.txt", task_vocabulary());
  }

  // A short run of a tiny model on synthetic sets.
  Words finetune(TaskKind task, const Words& more = {}) {
    put_file(path("train.jsonl"), task_file(task, 24, 3));
    put_file(path("valid.jsonl"), task_file(task, 12, 4));
    put_file(path("test.jsonl"), task_file(task, 9, 5));
    const Words files = {"--train-data", path("train.jsonl"), "--valid-data", path("valid.jsonl"),
                         "--test-data",  path("test.jsonl"),  "--tokenizer",  path("words")};
    const Words run = with(words_of("finetune --lr 3e-3 --epochs 2 --global-batch-size 8 --peak-tflops 1"), kTinyBert);
    return with(with(run, files), with({"--task", std::string(name_of(task)), "--save", path("run")}, more));
  }
};

TEST_F(FinetuneCommands, ScoresAreThoseOfEvalAndOfScore) {
  for (const TaskKind task : all_tasks()) {
    const std::string name(name_of(task)), extension(entry_of(task).predictions_extension);
    SCOPED_TRACE(name);
    fs::remove_all(path("run"));
    const auto json = json_of(finetune(task));
    EXPECT_EQ(json["task"], name);
    ASSERT_EQ(json["runs"].size(), 1U);
    const auto evaluated = json_of({"eval", name, "--load", path("run") + "/best", "--data", path("valid.jsonl"),
                                    "--overwrite", "--predictions", path("predictions" + extension)});
    const auto scored =
        json_of({"score", name, "--data", path("valid.jsonl"), "--predictions", path("predictions" + extension)});
    for (const auto& [metric, value] : json["runs"][0]["valid"].items()) {
      EXPECT_EQ(evaluated[metric], value) << metric;
      if (metric.starts_with("accuracy_")) continue;
      EXPECT_NEAR(scored[metric].get<double>(), value.get<double>(), 1e-9) << metric;
    }
    EXPECT_EQ(read_file(path("run") + "/predictions-valid" + extension), read_file(path("predictions" + extension)));
    EXPECT_FALSE(json["runs"][0]["test"].empty());
    EXPECT_TRUE(fs::exists(path("run") + "/predictions-test" + extension));
  }
}

TEST_F(FinetuneCommands, SeveralSeedsGiveAMedianAndAnEnsemble) {
  const Words words = finetune(TaskKind::kRace, {"--seeds", "3", "--ensemble", "--seed", "5"});
  const auto json = json_of(words);
  ASSERT_EQ(json["runs"].size(), 3U);
  std::vector<double> scores;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json["runs"][i]["seed"], 5 + i);
    scores.push_back(json["runs"][i]["valid"]["accuracy"]);
    EXPECT_TRUE(fs::exists(path("run") + fmt::format("/seed-{}/best", 5 + i)));
  }
  std::ranges::sort(scores);
  EXPECT_EQ(json["median"]["valid"]["accuracy"], scores[1]);
  const auto median = static_cast<std::size_t>(json["median"]["seed"].get<int>() - 5);
  EXPECT_EQ(json["median"]["test"], json["runs"][median]["test"]);
  const auto ensemble = json_of(
      {"score", "race", "--data", path("valid.jsonl"), "--predictions", path("run") + "/predictions-valid.json"});
  EXPECT_EQ(ensemble["accuracy"], json["ensemble"]["valid"]["accuracy"]);
  // Nothing is trained again, and nothing changes.
  const auto again = json_of(words);
  EXPECT_EQ(again["runs"], json["runs"]);
  EXPECT_EQ(again["ensemble"], json["ensemble"]);
}

// The search's runs are runs like any other, of the first seed; those that count are the best point's.
TEST_F(FinetuneCommands, SearchTriesEveryPointAndTheBestOneRunsWithSeveralSeeds) {
  const Words words = finetune(TaskKind::kMnli, {"--search", "--search-batch-sizes", "6", "12", "--search-lrs", "1e-6",
                                                 "1e-2", "--seeds", "2", "--epochs", "4"});
  const Outcome searched = must(words);
  EXPECT_THAT(searched.errors, HasSubstr("search: point 4 of 4, batch size 12, learning rate 0.01"));
  EXPECT_THAT(searched.output,
              AllOf(HasSubstr("search, by the first score"), HasSubstr("chosen"), HasSubstr("median, seed")));
  const auto json = json_of(words);
  ASSERT_EQ(json["search"].size(), 4U);
  double best = -1;
  Json best_point;
  for (const auto& point : json["search"]) {
    fs::remove_all(path("alone"));
    const Words alone = with(finetune(TaskKind::kMnli, {"--epochs", "4"}),
                             {"--save", path("alone"), "--global-batch-size", point["global_batch_size"].dump(), "--lr",
                              point["lr"].dump()});
    const auto run = json_of(alone)["runs"][0];
    EXPECT_EQ(run["valid"], point["valid"]) << point;
    EXPECT_EQ(run["iteration"], point["iteration"]) << point;
    if (point["valid"]["accuracy"] <= best) continue;
    best = point["valid"]["accuracy"];
    best_point = point;
  }
  EXPECT_EQ(json["chosen"]["lr"], best_point["lr"]);
  EXPECT_EQ(json["chosen"]["global_batch_size"], best_point["global_batch_size"]);
  ASSERT_EQ(json["runs"].size(), 2U);
  EXPECT_EQ(json["runs"][0]["valid"]["accuracy"], best);
  EXPECT_EQ(json["runs"][1]["seed"], 1235);
  EXPECT_FALSE(json["runs"][0]["test"].empty());
  const std::string chosen =
      fmt::format("batch-{}-lr-{}", json["chosen"]["global_batch_size"].dump(), json["chosen"]["lr"].get<double>());
  EXPECT_TRUE(fs::exists(path("run") + "/" + chosen + "/seed-1235/best"));
  // A point whose run is lost is searched with again, the others are not, and nothing changes.
  fs::remove_all(path("run") + "/batch-6-lr-1e-06");
  const Outcome again = run_teratron(with(words, {"--json", path("again.json")}));
  EXPECT_THAT(again.errors, HasSubstr("nothing to train: '" + path("run") + "/" + chosen));
  EXPECT_EQ(Json::parse(read_file(path("again.json")))["search"], json["search"]);
  EXPECT_THAT(refused(with(words, {"--epochs", "3"})), HasSubstr("--epochs 4 there, 3 now"));
}

TEST_F(FinetuneCommands, StartsFromAPretrainedEncoderAndSaysWhatIsDrawn) {
  finetune(TaskKind::kMnli);  // its files
  std::string text;
  for (std::size_t i = 0; i < 60; ++i)
    text += fmt::format("{0} {1}. {2} {0} {1}.\n\n", kTaskWords[i % 7], kTaskWords[i % 9], kTaskWords[i % 5]);
  write_file_atomically(path("text.txt"), text);
  succeed(
      {"data", "tokenize", "--split-sentences", "--tokenizer", path("words"), "--out", path("data"), path("text.txt")});
  succeed(with({"train"}, with(kTinyBert, {"--data-path", path("data"), "--tokenizer", path("words"), "--train-iters",
                                           "2", "--save", path("pretrained"), "--peak-tflops", "1"})));
  const Outcome outcome =
      must({"finetune", "--task", "mnli", "--load", path("pretrained"), "--train-data", path("train.jsonl"),
            "--valid-data", path("valid.jsonl"), "--epochs", "1", "--save", path("run"), "--peak-tflops", "1"});
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("starts from the weights in"), HasSubstr("classifier")));
  EXPECT_THAT(refused({"eval", "mnli", "--load", path("pretrained"), "--data", path("valid.jsonl")}),
              HasSubstr("was not trained for mnli; `teratron finetune --task mnli --load"));
}

TEST_F(FinetuneCommands, GoesOnWithItsOwnExamplesAlone) {
  const Words words = finetune(TaskKind::kQqp);
  succeed(words);
  const Outcome again = must(words);
  EXPECT_THAT(again.errors, HasSubstr("nothing to train: '" + path("run") + "' has done its 2 epochs, 6 updates"));
  fs::rename(path("train.jsonl"), path("moved.jsonl"));
  EXPECT_EQ(run_teratron(with(words, {"--train-data", path("moved.jsonl")})).exit_code, 0);
  // As many examples and tokens: two words of one text have changed places.
  std::string text = read_file(path("moved.jsonl"));
  const std::size_t row = text.find('\n') + 1,
                    question = text.find('\t', text.find('\t', text.find('\t', row) + 1) + 1) + 1;
  const std::size_t end = text.find(' ', question), second = text.find_first_of(" \t", end + 1);
  text = text.substr(0, question) + text.substr(end + 1, second - end - 1) + " " +
         text.substr(question, end - question) + text.substr(second);
  for (const char* flag : {"--train-data", "--valid-data"}) {
    put_file(path("other.jsonl"), flag == std::string("--train-data") ? text : task_file(TaskKind::kQqp, 12, 9));
    EXPECT_THAT(refused(with(with(words, {"--train-data", path("moved.jsonl")}), {flag, path("other.jsonl")})),
                AllOf(HasSubstr("on other examples"), HasSubstr("choose another --save")))
        << flag;
  }
}

TEST_F(FinetuneCommands, HelpShowsOnlyModelsThatCanBeFineTuned) {
  const std::string help = succeed({"finetune", "--help"});
  EXPECT_THAT(help, AllOf(HasSubstr("bert-336M"), Not(HasSubstr("124M")), Not(HasSubstr("gpt2"))));
}

TEST_F(FinetuneCommands, BadInputIsOneMessageAndExitCode2) {
  const auto refuses = [&](const Words& words, const std::string& message) {
    EXPECT_THAT(refused(words), HasSubstr(message));
    EXPECT_FALSE(fs::exists(path("run"))) << message;
  };
  const Words words = finetune(TaskKind::kQqp);
  refuses({"finetune", "--task", "mnli", "--train-data", "a", "--valid-data", "b", "--save", path("run")},
          "fine-tuning needs a BERT");
  refuses(with(words, {"--model", "124M"}), "fine-tuning needs a BERT");
  refuses(with(words, {"--ensemble"}), "--ensemble averages models of several seeds: --seeds 5");
  refuses(with(words, {"--train-data", path("missing")}), "missing");
  refuses(with(words, {"--lr-warmup-fraction", "2"}), "--lr-warmup-fraction is 2; it must be between 0 and 1");
  refuses(with(words, {"--task", "cola"}), "mnli");
  put_file(path("mnli.tsv"), task_file(TaskKind::kMnli, 12, 4));
  succeed(words);
  EXPECT_THAT(refused(with(words, {"--epochs", "3"})),
              AllOf(HasSubstr("holds a run with other settings: --epochs 2 there, 3 now; give that run's settings"),
                    HasSubstr("choose another --save")));
  EXPECT_THAT(refused(with(words, {"--global-batch-size", "4", "--lr-warmup-fraction", "0.5"})),
              HasSubstr("--global-batch-size 8 there, 4 now; --lr-warmup-fraction 0 there, 0.5 now"));
  EXPECT_THAT(refused(with(words, {"--lr", "1e-3"})), HasSubstr("--lr 0.003 there, 0.001 now"));
  EXPECT_THAT(refused(with(words, {"--task", "mnli", "--train-data", path("mnli.tsv"), "--valid-data", path("mnli.tsv"),
                                   "--test-data", path("mnli.tsv")})),
              HasSubstr("holds a run of `teratron finetune --task qqp`, which `finetune --task mnli` does not go on"));
  // Another number of labels than the model has.
  EXPECT_THAT(refused({"eval", "mnli", "--load", path("run"), "--data", path("valid.jsonl")}),
              HasSubstr("was not trained for mnli"));
}

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

// Pairs that say the same in other words: every word has its own translation.
TEST_F(FinetuneCommands, VectorsAreLearnedFromPairsWithTheOthersAsNegatives) {
  RandomSequence random({.seed = 9});
  const auto pairs = [&](int count) {
    std::string file = "text,pair\n";
    for (int i = 0; i < count; ++i) {
      std::string first, second;
      for (int word = 0; word < 4; ++word) {
        const std::uint64_t drawn = random.below(8);
        first += fmt::format("{} ", kTaskWords[drawn]);
        second += fmt::format("{} ", kTaskWords[8 + drawn]);
      }
      file += first + "," + second + "\n";
    }
    return file;
  };
  Words words = finetune(TaskKind::kEmbed, {"--epochs", "12", "--lr", "1e-2", "--layernorm-placement", "post"});
  put_file(path("train.csv"), pairs(96));
  put_file(path("valid.csv"), pairs(20));
  for (std::string& word : words) {
    for (const char* set : {"train", "valid"}) {
      if (word == path(fmt::format("{}.jsonl", set))) word = path(fmt::format("{}.csv", set));
    }
    if (word == path("test.jsonl")) word = path("valid.csv");
  }
  const auto json = json_of(words);
  const double accuracy = json["runs"][0]["valid"]["retrieval_accuracy"];
  EXPECT_GT(accuracy, 60) << "one of 20 is right by chance";
  const auto evaluated = json_of({"eval", "embed", "--load", path("run") + "/best", "--data", path("valid.csv")});
  EXPECT_EQ(evaluated["retrieval_accuracy"], accuracy);
  // The run's vectors are those of `embed`, and an export's, in the run's own way.
  put_file(path("texts"), "rain snow\nwind\n");
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run") + "/best", path("hf")});
  for (const char* folder : {"run/best", "hf"}) {
    const Outcome outcome =
        must({"embed", path("texts"), "--load", path(folder), "--out", path("vectors.npy"), "--overwrite"});
    EXPECT_THAT(outcome.errors, HasSubstr("is a sentence-transformer: --pooling mean --normalize --seq-length"));
  }
  EXPECT_THAT(read_file(path("hf") + "/1_Pooling/config.json"), HasSubstr("\"pooling_mode_mean_tokens\": true"));

  // Micro-batches decide which pairs are negatives, so they stay.
  EXPECT_THAT(refused(with(words, {"--micro-batch-size", "4"})), HasSubstr("--micro-batch-size 8 there, 4 now"));
  EXPECT_THAT(refused(with(words, {"--pooling", "cls"})), HasSubstr("pooling mean there, cls now"));
  const auto refusal = [&](const Words& more) {
    fs::remove_all(path("run"));
    return refused(with(words, more));
  };
  EXPECT_THAT(refusal({"--micro-batch-size", "3"}),
              HasSubstr("an update has 8 examples, in micro-batches of 3 that are one another's negatives, so it must "
                        "have a multiple of 3: --global-batch-size 6"));
  EXPECT_THAT(refusal({"--dp", "2"}), HasSubstr("on 2 copies of the model, so it must have a multiple of 16"));
  EXPECT_THAT(refusal({"--micro-batch-size", "1"}), HasSubstr("a pair alone has no others to tell it from"));
  EXPECT_THAT(refusal({"--ensemble", "--seeds", "2"}), HasSubstr("vectors of several models have no mean"));
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
