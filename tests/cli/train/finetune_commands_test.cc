// `teratron finetune` and `eval TASK` end to end on synthetic sets: what they keep and say, medians and ensembles,
// going on, and how they refuse.

#include <algorithm>

#include "cli/finetune_runs.h"

namespace teratron::testing {
namespace {

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

// A rate with which the weights grow beyond what outputs of fp32 can be.
TEST_F(FinetuneCommands, APointOfASearchWhoseOutputsAreNotFiniteIsTheWorst) {
  const Words words = finetune(TaskKind::kMnli, {"--search", "--search-batch-sizes", "24", "--seeds", "1"});
  const Words rates = {"--search-lrs", "1e38", "1e-3"};
  const Outcome searched = must(with(words, rates));
  EXPECT_THAT(searched.errors, AllOf(HasSubstr("search: the output for example"), HasSubstr("is not finite")));
  EXPECT_EQ(json_of(with(words, rates))["chosen"]["lr"], 1e-3);
  fs::remove_all(path("run"));
  EXPECT_THAT(refused(with(words, {"--search-lrs", "1e38"})), HasSubstr("training diverged at every point"));
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
  EXPECT_THAT(refused(with(words, {"--global-batch-size", "7"})), HasSubstr("--global-batch-size 8 there, 7 now;"));
  EXPECT_THAT(refused(with(words, {"--lr", "1e-3"})), HasSubstr("--lr 0.003 there, 0.001 now"));
  EXPECT_THAT(refused(with(words, {"--task", "mnli", "--train-data", path("mnli.tsv"), "--valid-data", path("mnli.tsv"),
                                   "--test-data", path("mnli.tsv")})),
              HasSubstr("holds a run of `teratron finetune --task qqp`, which `finetune --task mnli` does not go on"));
  // Another number of labels than the model has.
  EXPECT_THAT(refused({"eval", "mnli", "--load", path("run"), "--data", path("valid.jsonl")}),
              HasSubstr("was not trained for mnli"));
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
  put_file(path("one.csv"), "text,pair\nrain,snow\n");
  EXPECT_THAT(refusal({"--train-data", path("one.csv")}), HasSubstr("there is one pair to train on"));
}

}  // namespace
}  // namespace teratron::testing
