// The names of a Hugging Face model's labels decide which of its outputs means what: in eval, in finetune, and in
// conversions. The model here always says one label, whatever it reads, so the right score is known.

#include "cli/binary.h"
#include "cli/weights/bert_folder.h"
#include "tasks/task.h"

namespace teratron::testing {
namespace {

using Names = std::vector<std::string>;

class LabelNames : public FolderTest {
 protected:
  // Two pairs that are labelled `label`.
  std::string pairs(TaskKind task, const std::string& label) const {
    const bool is_mnli = task == TaskKind::kMnli;
    std::string text = is_mnli ? "gold_label\tsentence1\tsentence2\n" : "is_duplicate\tquestion1\tquestion2\n";
    const std::string written = is_mnli ? label : label == "duplicate" ? "1" : "0";
    for (const char* words : {"rain snow\twind", "sun\tfog hail"}) text += fmt::format("{}\t{}\n", written, words);
    put_file(path("pairs.tsv"), text);
    return path("pairs.tsv");
  }

  // A model with these labels that always says `answer`.
  void make(const Names& labels, std::size_t answer, const Json& config = Json::object()) const {
    fs::remove_all(path("hf"));
    TinyBertFolder model({.name = "BertForSequenceClassification", .labels = labels, .count = std::ssize(labels)});
    model.always_answer(answer);
    model.changed_config = config;
    model.write(path("hf"));
  }

  Outcome eval(TaskKind task, const std::string& folder) const {
    return run_teratron({"eval", std::string(name_of(task)), "--load", path(folder), "--data", path("pairs.tsv"),
                         "--predictions", path("predictions.tsv"), "--overwrite", "--json", "-"});
  }
};

Names names_of_task(TaskKind task) { return label_names(task); }

TEST_F(LabelNames, InWhateverOrderMeanTheSameInEvalAndInConversions) {
  for (const TaskKind task : {TaskKind::kMnli, TaskKind::kQqp}) {
    Names order = names_of_task(task);
    std::ranges::sort(order);
    do {
      for (std::size_t answer = 0; answer < order.size(); ++answer) {
        SCOPED_TRACE(fmt::format("{} answers {}", fmt::join(order, " "), order[answer]));
        make(order, answer);
        pairs(task, order[answer]);
        const Outcome outcome = eval(task, "hf");
        ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
        EXPECT_EQ(Json::parse(outcome.output)["accuracy"], 100);
        EXPECT_THAT(outcome.errors, Not(HasSubstr("have no names")));
        const std::string written = task == TaskKind::kQqp ? (order[answer] == "duplicate" ? "1" : "0") : order[answer];
        EXPECT_EQ(bytes_of_file(path("predictions.tsv")), fmt::format("index\tprediction\n0\t{0}\n1\t{0}\n", written));
        if (answer > 0) continue;
        fs::remove_all(path("run"));
        fs::remove_all(path("back"));
        succeed({"convert", "--from", "hf", "--to", "teratron", path("hf"), path("run")});
        succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("back")});
        for (const char* folder : {"run", "back"}) {
          EXPECT_EQ(Json::parse(eval(task, folder).output)["accuracy"], 100) << folder;
        }
        const auto config = Json::parse(bytes_of_file(path("back") + "/config.json"));
        const auto before = Json::parse(bytes_of_file(path("hf") + "/config.json"));
        EXPECT_EQ(config["id2label"], before["id2label"]);
        EXPECT_EQ(config["label2id"], before["label2id"]);
        EXPECT_EQ(tensors_of(path("back") + "/model.safetensors"), tensors_of(path("hf") + "/model.safetensors"));
      }
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST_F(LabelNames, AreTheSameInCapitalsAndWithOtherHyphens) {
  make({"NEUTRAL", "Entailment", "CONTRADICTION"}, 2);
  pairs(TaskKind::kMnli, "contradiction");
  EXPECT_EQ(Json::parse(eval(TaskKind::kMnli, "hf").output)["accuracy"], 100);
  make({"Duplicate", "Not Duplicate"}, 0);
  pairs(TaskKind::kQqp, "duplicate");
  EXPECT_EQ(Json::parse(eval(TaskKind::kQqp, "hf").output)["accuracy"], 100);
}

TEST_F(LabelNames, ThatOnlyCountAreTakenInOurOrderAndThatIsSaidOnce) {
  pairs(TaskKind::kMnli, "entailment");
  for (const Names& names : {Names{"LABEL_0", "LABEL_1", "LABEL_2"}, Names{"0", "1", "2"}}) {
    make(names, 1);
    const Outcome outcome = eval(TaskKind::kMnli, "hf");
    EXPECT_EQ(Json::parse(outcome.output)["accuracy"], 100);
    EXPECT_EQ(outcome.errors.find("have no names"), outcome.errors.rfind("have no names"));
    EXPECT_THAT(outcome.errors,
                HasSubstr("have no names (id2label); they are taken as contradiction, entailment, neutral"));
  }
  // label2id alone may have the names.
  make({"LABEL_0", "LABEL_1", "LABEL_2"}, 1, {{"label2id", {{"neutral", 2}, {"entailment", 1}, {"contradiction", 0}}}});
  EXPECT_THAT(eval(TaskKind::kMnli, "hf").errors, Not(HasSubstr("have no names")));
  make({"LABEL_0", "LABEL_1", "LABEL_2"}, 0, {{"label2id", {{"neutral", 2}, {"entailment", 0}, {"contradiction", 1}}}});
  EXPECT_EQ(Json::parse(eval(TaskKind::kMnli, "hf").output)["accuracy"], 100);
}

TEST_F(LabelNames, AreRefusedByNameForAnotherTask) {
  pairs(TaskKind::kMnli, "entailment");
  const std::vector<std::pair<Names, std::string>> others = {
      {{"negative", "neutral", "positive"},
       "It predicts 3 labels (negative, neutral, positive), and mnli has 3 labels (contradiction, entailment, "
       "neutral); "
       "'negative' is none of them"},
      {{"entailment", "LABEL_1", "neutral"}, "'LABEL_1' is none of them"},
      {{"a", "b", "c", "d", "e"}, "It predicts 5 labels (a, b, c, d, e), and mnli has 3"}};
  for (const auto& [names, message] : others) {
    make(names, 0);
    const Outcome outcome = eval(TaskKind::kMnli, "hf");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.errors, HasSubstr(message));
  }
}

TEST_F(LabelNames, ThatContradictThemselvesAreRefused) {
  const Names mnli = names_of_task(TaskKind::kMnli);
  const auto refuses = [&](const Names& names, const Json& config, const std::string& message) {
    make(names, 0, config);
    pairs(TaskKind::kMnli, "neutral");
    const Words convert = {"convert", "--from", "hf", "--to", "teratron", path("hf"), path("out")};
    for (const Outcome& outcome : {eval(TaskKind::kMnli, "hf"), run_teratron(convert)}) {
      EXPECT_EQ(outcome.exit_code, 2);
      EXPECT_THAT(outcome.errors, HasSubstr(message));
    }
  };
  refuses({"entailment", "Entailment", "neutral"}, {}, "id2label has the name 'entailment' twice");
  refuses(mnli, {{"label2id", {{"contradiction", 1}, {"entailment", 0}, {"neutral", 2}}}},
          "id2label names row 0 'contradiction', and label2id says that 'contradiction' is 1");
  refuses(mnli, {{"label2id", {{"yes", 0}, {"no", 1}, {"maybe", 2}}}},
          "id2label names row 0 'contradiction', which label2id does not have");
  refuses(mnli, {{"id2label", {{"1", "contradiction"}, {"2", "entailment"}, {"3", "neutral"}}}},
          "id2label has 3 names and none of 0");
  // Default names are no names.
  make(mnli, 2, {{"label2id", {{"LABEL_0", 0}, {"LABEL_1", 1}, {"LABEL_2", 2}}}});
  EXPECT_EQ(Json::parse(eval(TaskKind::kMnli, "hf").output)["accuracy"], 100);
}

// The head of a model of the task is trained on by name; with a rate of nearly 0 it stays what it was.
TEST_F(LabelNames, DecideWhatFinetuneTakesOfAHead) {
  const auto finetune = [&](const std::string& save) {
    return Words{"finetune",
                 "--task",
                 "mnli",
                 "--load",
                 path("hf"),
                 "--train-data",
                 path("pairs.tsv"),
                 "--valid-data",
                 path("pairs.tsv"),
                 "--epochs",
                 "1",
                 "--lr",
                 "1e-12",
                 "--peak-tflops",
                 "1",
                 "--save",
                 path(save)};
  };
  pairs(TaskKind::kMnli, "contradiction");
  make({"entailment", "neutral", "contradiction"}, 2);
  const auto json = json_of(finetune("run"));
  EXPECT_EQ(json["runs"][0]["valid"]["accuracy"], 100);
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("back")});
  const auto config = Json::parse(bytes_of_file(path("back") + "/config.json"));
  EXPECT_EQ(config["id2label"], (Json{{"0", "contradiction"}, {"1", "entailment"}, {"2", "neutral"}}));
  EXPECT_EQ(Json::parse(eval(TaskKind::kMnli, "back").output)["accuracy"], 100);

  make({"negative", "neutral", "positive"}, 0);
  EXPECT_THAT(run_teratron(finetune("other")).errors,
              HasSubstr("has 3 labels (negative, neutral, positive), and 3 labels (contradiction, entailment, "
                        "neutral) are needed: classifier.weight, classifier.bias are drawn anew"));
  make({"a", "b", "c", "d", "e"}, 0);
  const std::string five = run_teratron(finetune("five")).errors;
  EXPECT_THAT(five, AllOf(HasSubstr("has 5 labels (a, b, c, d, e)"), Not(HasSubstr("saved without"))));
  make({"LABEL_0", "LABEL_1", "LABEL_2"}, 0);
  const std::string unnamed = run_teratron(finetune("unnamed")).errors;
  EXPECT_THAT(unnamed, AllOf(HasSubstr("have no names"), Not(HasSubstr("drawn"))));
}

}  // namespace
}  // namespace teratron::testing
