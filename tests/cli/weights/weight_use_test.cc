// Every kind of weights with every command that takes weights: it works, it works and says what it draws, or it is
// refused with a message that says what to do. Nothing ends in another way.

#include <algorithm>

#include "base/turn.h"
#include "cli/tiny_training.h"
#include "cli/weights/bert_folder.h"
#include "tasks/task.h"

namespace teratron::testing {
namespace {

// Outcome of a pair, in the letters of the table below.
struct Result {
  char sign;
  const char* message;  // of a refusal
};
constexpr Result kRefusals[] = {
    {'B', "is a BERT, which reads texts and continues none: "},
    {'G', "needs a BERT; name a BERT's folder"},
    {'F', "holds a run of `teratron finetune --task "},
    {'W', "holds weights alone"},
    {'H', "is a Hugging Face model: train --finetune "},
    {'T', "was not trained for "},
    {'M', "has no head that predicts masked words, which "},
    {'A', "\"architectures\" in config.json names none of "},
    {'n', ""},  // not the format given to convert
};

constexpr const char* kCommands[] = {"train --finetune", "train --load",
                                     "finetune mnli",    "finetune qqp",
                                     "finetune squad1",  "finetune race",
                                     "eval loss",        "eval wikitext103",
                                     "eval lambada",     "eval multiple-choice",
                                     "generate",         "eval mnli",
                                     "eval qqp",         "eval squad1",
                                     "eval race",        "embed",
                                     "fill-mask",        "to hf",
                                     "to teratron"};

struct Row {
  const char* weights;
  // A sign for each command: w it works; d it works, and draws what it says; otherwise refused. '.': not tried here,
  // since whether evaluation reads these folders directly is no matter of what is in them.
  const char* cells;
};
constexpr Row kTable[] = {
    // train --finetune, --load; finetune m q s r; loss wiki lambada choice generate; eval m q s r; embed, fill-mask; to
    // hf,
    // teratron
    {"a GPT-2 run", "ww GGGG wwwww GGGG GG wn"},
    {"GPT2LMHeadModel", "wH GGGG wwwww GGGG GG nw"},
    {"GPT2LMHeadModel, converted", "wW GGGG wwwww GGGG GG wn"},
    {"a BERT run", "ww dddd wBBBB TTTT ww wn"},
    {"BertModel", "dH dddd MBBBB TTTT wM nw"},
    {"BertModel, converted", "dW dddd MBBBB TTTT wM wn"},
    {"BertForMaskedLM", "dH dddd wBBBB TTTT ww nd"},
    {"BertForNextSentencePrediction", "dH dddd MBBBB TTTT wM nd"},
    {"BertForTokenClassification", "dH dddd MBBBB TTTT wM nw"},
    {"one label", "dH dddd MBBBB TTTT wM nw"},
    {"a class of its own", "dH dddd MBBBB AAAA wM nA"},
    {"BertForPreTraining", "wH dddd wBBBB TTTT ww nw"},
    {"MNLI's labels", "dH wddd MBBBB wTTT wM nw"},
    {"MNLI's labels, converted", "dW wddd MBBBB wTTT wM wn"},
    {"5 labels", "dH dddd MBBBB TTTT wM nw"},
    {"BertForMultipleChoice", "dH dddw MBBBB TTTw wM nw"},
    {"BertForQuestionAnswering", "dH ddwd MBBBB TTwT wM nw"},
    {"a run of mnli", "dF wddd MBBBB wTTT wM wn"},
    {"a run of qqp", "dF dwdd MBBBB TwTT wM wn"},
    {"a run of squad1", "dF ddwd MBBBB TTwT wM wn"},
    {"a run of race", "dF dddw MBBBB TTTw wM wn"},
};

class WeightUse : public ::testing::Test {
 protected:
  static constexpr const char* kTasks[] = {"mnli", "qqp", "squad1", "race"};

  std::string path(const std::string& name) const { return gpt_.path(name); }

  WeightUse() {
    fs::create_directories(path("words"));
    put_file(path("words") + "/vocab.txt", task_vocabulary());
    std::string sentences;
    for (std::size_t i = 0; i < 24; ++i) {
      sentences += fmt::format("{0} {1}. {2} {0} {1}.\n\n", kTaskWords[i % 7], kTaskWords[i % 9], kTaskWords[i % 5]);
    }
    put_file(path("sentences.txt"), sentences);
    succeed({"data", "tokenize", "--split-sentences", "--tokenizer", path("words"), "--out", path("sentences"),
             path("sentences.txt")});
    for (const TaskKind task : all_tasks()) {
      put_file(path(task_file_name(task)), task_file(task, 4, 3));
    }
    put_file(path("texts"), "rain snow\nwind\n");
    put_file(path("article.txt"), "the rank waits a layer sums the gradient\n");
    put_file(path("passages.jsonl"), "{\"text\": \"the rank waits\"}\n");
    put_file(path("questions.jsonl"), R"({"context": "the", "choices": ["rank", "layer"], "answer": 0})");
    make_weights();
  }

  std::string convert(const std::string& from, const std::string& folder, const std::string& to) const {
    succeed({"convert", "--from", from, "--to", from == "hf" ? "teratron" : "hf", path(folder), path(to)});
    return path(to);
  }

  std::string hugging_face(const std::string& name, TinyBertClass what) {
    TinyBertFolder(std::move(what)).write(path(name));
    return path(name);
  }

  void make_weights() {
    succeed(gpt_.command({"--num-layers", "1", "--hidden-size", "16", "--train-iters", "1", "--eval-iters", "1",
                          "--peak-tflops", "1", "--save", path("gpt")}));
    weights_["a GPT-2 run"] = path("gpt");
    weights_["GPT2LMHeadModel"] = convert("teratron", "gpt", "gpt-hf");
    weights_["GPT2LMHeadModel, converted"] = convert("hf", "gpt-hf", "gpt-converted");
    weights_["BertModel"] = hugging_face("body", {.name = "BertModel", .labels = {}});
    weights_["BertModel, converted"] = convert("hf", "body", "body-converted");
    weights_["BertForMaskedLM"] = hugging_face("masked", {.name = "BertForMaskedLM", .labels = {}});
    weights_["BertForNextSentencePrediction"] =
        hugging_face("order", {.name = "BertForNextSentencePrediction", .labels = {}});
    weights_["BertForTokenClassification"] =
        hugging_face("tokens", {.name = "BertForTokenClassification", .labels = {}});
    weights_["one label"] = hugging_face("one", {.labels = {}, .count = 1});
    TinyBertFolder own_class({.labels = {"entailment", "neutral", "contradiction"}});
    own_class.changed_config["architectures"] = {"BertForNli"};
    own_class.write(path("own"));
    weights_["a class of its own"] = path("own");
    weights_["BertForPreTraining"] = hugging_face("pretraining", {.name = "BertForPreTraining", .labels = {}});
    weights_["MNLI's labels"] = hugging_face("labels", {.labels = {"entailment", "neutral", "contradiction"}});
    weights_["MNLI's labels, converted"] = convert("hf", "labels", "labels-converted");
    weights_["5 labels"] = hugging_face("five", {.labels = {}, .count = 5});
    weights_["BertForMultipleChoice"] = hugging_face("choice", {.name = "BertForMultipleChoice", .labels = {}});
    weights_["BertForQuestionAnswering"] = hugging_face("spans", {.name = "BertForQuestionAnswering", .labels = {}});
    weights_["a BERT run"] = path("bert");
    succeed(with(train(path("pretraining"), "sentences"), {"--save", path("bert"), "--finetune", path("pretraining")}));
    for (const char* task : kTasks) {
      weights_[fmt::format("a run of {}", task)] = path(task);
      succeed(finetune(task, path("body"), path(task)));
    }
  }

  Words train(const std::string& from, const std::string& corpus) const {
    return with(words_of("train --seq-length 24 --micro-batch-size 2 --train-iters 1 --eval-iters 1 --peak-tflops 1 "
                         "--lr 1e-4"),
                {"--data-path", path(corpus), "--split", from.empty() ? "1" : "0.6,0.4"});
  }

  std::string file_of(std::string_view task) const {
    const auto is_it = [&](TaskKind kind) { return name_of(kind) == task; };
    return path(task_file_name(*std::ranges::find_if(all_tasks(), is_it)));
  }

  Words finetune(std::string_view task, const std::string& from, const std::string& save) const {
    return with(words_of("finetune --epochs 1 --seq-length 40 --peak-tflops 1"),
                {"--task", std::string(task), "--load", from, "--train-data", file_of(task), "--valid-data",
                 file_of(task), "--save", save});
  }

  Words command(std::string_view name, const std::string& from, bool is_gpt) const {
    const auto task = std::string(name.substr(name.find(' ') + 1));
    if (name == "train --finetune") {
      return with(train(from, is_gpt ? "data" : "sentences"), {"--finetune", from, "--json", "-"});
    }
    if (name == "train --load") return {"train", "--load", from, "--save", path("out"), "--train-iters", "1"};
    if (name.starts_with("finetune")) return finetune(task, from, path("out"));
    if (name == "eval loss" && is_gpt) return {"eval", "loss", "--load", from, "--data-path", path("data")};
    if (name == "eval loss") {
      return {"eval",    "loss",    "--load",       from, "--data-path", path("sentences"),
              "--split", "0.6,0.4", "--seq-length", "24"};
    }
    if (name == "fill-mask") return {"fill-mask", "--load", from, "--prompt", "rain is [MASK]"};
    if (name == "eval wikitext103") return {"eval", "wikitext103", "--load", from, "--data", path("article.txt")};
    if (name == "eval lambada") return {"eval", "lambada", "--load", from, "--data", path("passages.jsonl")};
    if (name == "eval multiple-choice")
      return {"eval", "multiple-choice", "--load", from, "--data", path("questions.jsonl")};
    if (name == "generate") return {"generate", "--load", from, "--prompt", "the", "--max-new-tokens", "2"};
    if (name.starts_with("eval")) return {"eval", task, "--load", from, "--data", file_of(task)};
    if (name == "embed") return {"embed", "--load", from, "--out", path("out"), path("texts")};
    const bool is_to_hf = name == "to hf";
    return {"convert", "--from", is_to_hf ? "teratron" : "hf", "--to", is_to_hf ? "hf" : "teratron", from, path("out")};
  }

  void check(const std::string& weights, std::string_view name, char sign) const {
    SCOPED_TRACE(fmt::format("{} of {}", name, weights));
    fs::remove_all(path("out"));
    const Outcome outcome = run_teratron(command(name, weights_.at(weights), weights.find("GPT") != weights.npos));
    if (sign == 'w' || sign == 'd') {
      ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
      EXPECT_EQ(outcome.errors.find("drawn") != std::string::npos, sign == 'd') << outcome.errors;
      if (name == "train --finetune") expect_that_it_learns(outcome);
      return;
    }
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    const auto* refusal = std::ranges::find(kRefusals, sign, &Result::sign);
    ASSERT_NE(refusal, std::end(kRefusals));
    EXPECT_THAT(outcome.errors, HasSubstr(refusal->message));
    EXPECT_FALSE(fs::exists(path("out")));
  }

  // A head that learns nothing has no loss; that of a task on the order of sentences has one of a few tenths.
  static void expect_that_it_learns(const Outcome& outcome) {
    const auto json = Json::parse(outcome.output);
    EXPECT_GT(json["final_loss"].get<double>(), 2) << "of some dozens of words";
    EXPECT_GT(json["validation_loss"].get<double>(), 2);
  }

  const TinyTraining gpt_{600};
  std::map<std::string, std::string> weights_;
};

TEST_F(WeightUse, EveryKindAndCommandFollowTheTable) {
  std::size_t number = 0;
  for (const auto& [weights, cells] : kTable) {
    std::string signs = cells;
    std::erase(signs, ' ');
    ASSERT_EQ(signs.size(), std::size(kCommands)) << weights;
    for (std::size_t i = 0; i < signs.size(); ++i) {
      if (signs[i] != '.' && has_its_turn(number++, 3)) check(weights, kCommands[i], signs[i]);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
