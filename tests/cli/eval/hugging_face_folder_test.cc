// Folders of Hugging Face's, given to the commands as they are: what comes is what a conversion gives, and weights that
// are not finite are refused by all of them before anything is written.

#include <cstring>

#include "checkpoint/hugging_face_files.h"
#include "cli/tiny_training.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::testing {
namespace {

constexpr auto kSame = [](auto&) {};

class HuggingFaceFolders : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    training_ = new TinyTraining(1000);
    succeed(training_->command({"--train-iters", "4", "--save", path("run"), "--vocab-size", "300"}));
    succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("hf")});
    write_file_atomically(path("wiki.tokens"), " = The rank = \n the layer sums a gradient , and the rank waits . \n");
    write_file_atomically(path("cloze.jsonl"), "{\"text\": \"the layer sums a gradient\"}\n{\"text\": \"a rank\"}\n");
  }
  static void TearDownTestSuite() { delete training_; }

  static std::string path(const std::string& name) { return training_->path(name); }

  static std::vector<Words> commands() {
    return {{"eval", "loss", "--data-path", path("data"), "--part", "validation"},
            {"eval", "wikitext103", "--data", path("wiki.tokens")},
            {"eval", "lambada", "--data", path("cloze.jsonl")},
            {"generate", "--prompt", "the rank", "--max-new-tokens", "9", "--prompt-logprobs"}};
  }
  // Without what depends on the machine.
  static Json result(const Words& command, const std::string& model, const Words& more) {
    Json json = json_of(with(command, with({"--load", model}, more)));
    for (const char* key : {"peak_memory_bytes", "tokens_per_second"}) json.erase(key);
    return json;
  }
  // A copy of a folder with its tokenizer, changed.
  static void make_variant(const fs::path& from, const std::string& to,
                           const std::function<void(FileTensors&)>& change) {
    fs::copy(from, path(to));
    testing::make_variant(from, path(to), kSame, change);
  }
  static void expect_refused(const Words& command, const std::string& written, const std::string& tensor) {
    const Outcome outcome = run_teratron(command);
    EXPECT_EQ(outcome.exit_code, 2) << command[0] << " " << command[1] << outcome.errors << outcome.output;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("are not finite: '" + tensor + "'"), HasSubstr("error: ")));
    EXPECT_EQ(outcome.errors.find("error: "), outcome.errors.rfind("error: ")) << "one message";
    EXPECT_FALSE(fs::exists(path(written)));
  }

  static TinyTraining* training_;
};

TinyTraining* HuggingFaceFolders::training_ = nullptr;

TEST_F(HuggingFaceFolders, GiveWhatTheirConversionGives) {
  // Half of the bits of each value, as many models are stored.
  make_variant(path("hf"), "hf-bf16", [](FileTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      std::string halves;
      for (std::size_t at = 0; at < tensor.bytes.size(); at += 4) halves += tensor.bytes.substr(at + 2, 2);
      tensor.bytes = halves;
      tensor.dtype = "BF16";
    }
  });
  for (const std::string model : {"hf", "hf-bf16"}) {
    succeed({"convert", "--from", "hf", "--to", "teratron", path(model), path(model + "-converted")});
    for (const Words& command : commands()) {
      for (const Words& more : {Words{}, Words{"--tp", "2"}, Words{"--pp", "2", "--bf16"}}) {
        EXPECT_EQ(result(command, path(model), more), result(command, path(model + "-converted"), more))
            << command[0] << " " << command[1];
      }
    }
  }
}

// The model has rows for 300 tokens, and its tokenizer fewer.
TEST_F(HuggingFaceFolders, WithMoreRowsThanTokensGenerateTextAlone) {
  const std::int64_t tokens = json_of({"tokenizer", "info", path("hf")}).at("vocab_size");
  ASSERT_LT(tokens, 300);
  write_file_atomically(path("prompts.txt"), "the rank\na layer\nwaits\n");
  const std::vector<Json> texts =
      json_lines_of(succeed({"generate", "--load", path("hf"), "--prompts", path("prompts.txt"), "--num-samples", "3",
                             "--temperature", "5", "--max-new-tokens", "60", "--ignore-end-of-text", "--json", "-"}));
  EXPECT_EQ(texts.size(), 9U);
  for (const Json& text : texts) {
    EXPECT_EQ(text.at("tokens").size(), 60U);
    for (const std::int64_t id : text.at("tokens")) EXPECT_LT(id, tokens);
  }
}

TEST_F(HuggingFaceFolders, EveryCommandRefusesWeightsThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto spoil = [&](const std::string& name) {
    return [name, infinity](FileTensors& tensors) { std::memcpy(tensors.at(name).bytes.data(), &infinity, 4); };
  };
  const std::string of_gpt2 = "transformer.h.1.mlp.c_proj.weight";
  make_variant(path("hf"), "wrong", spoil(of_gpt2));
  for (const Words& command : commands()) {
    expect_refused(with(command, {"--load", path("wrong"), "--json", path("result.json")}), "result.json", of_gpt2);
    expect_refused(with(command, {"--load", path("wrong"), "--json", path("result.json"), "--tp", "2", "--pp", "2"}),
                   "result.json", of_gpt2);
  }
  expect_refused({"convert", "--from", "hf", "--to", "teratron", path("wrong"), path("converted")}, "converted",
                 of_gpt2);
  expect_refused(training_->command({"--finetune", path("wrong"), "--train-iters", "2", "--save", path("tuned")}),
                 "tuned", of_gpt2);

  const std::string of_bert = "bert.encoder.layer.0.attention.self.key.weight";
  const fs::path golden = fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / "bert_classification";
  make_variant(golden, "wrong-bert", spoil(of_bert));
  write_file_atomically(path("wrong-bert") + "/vocab.txt", task_vocabulary());
  write_file_atomically(path("texts"), "rain\nsnow\n");
  RandomSequence random({.seed = 1});
  write_file_atomically(path("mnli.tsv"), mnli_file(6, random));
  expect_refused({"embed", "--load", path("wrong-bert"), "--out", path("v.npy"), path("texts")}, "v.npy", of_bert);
  expect_refused({"eval", "mnli", "--load", path("wrong-bert"), "--data", path("mnli.tsv"), "--predictions", path("p")},
                 "p", of_bert);
  expect_refused({"finetune", "--task", "mnli", "--load", path("wrong-bert"), "--train-data", path("mnli.tsv"),
                  "--valid-data", path("mnli.tsv"), "--save", path("tuned-bert"), "--peak-tflops", "1"},
                 "tuned-bert", of_bert);
}

}  // namespace
}  // namespace teratron::testing
