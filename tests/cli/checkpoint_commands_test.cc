// From text to a checkpoint and to Hugging Face's files and back, with nothing but the binary.

#include <regex>
#include <tuple>

#include "cli/tiny_training.h"
#include "tokenizer/chat_template_file.h"

namespace teratron::testing {
namespace {

class CheckpointCommands : public TrainingCommands<1000> {
 protected:
  Outcome train(const std::string& iterations, const Words& more) const {
    return run_teratron(
        training_.command(with({"--num-layers", "1", "--hidden-size", "8", "--seq-length", "8", "--save", path("run"),
                                "--train-iters", iterations, "--save-interval", "2"},
                               more)));
  }
};

TEST_F(CheckpointCommands, TrainPutsOneJsonObjectOnStandardOutputAndInfoAgreesWithIt) {
  const Outcome trained = train("4", {"--json", "-"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const Json result = Json::parse(trained.output);
  for (const char* key : {"final_loss", "validation_loss", "tokens_per_second", "peak_memory_bytes"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  const Json info = json_of({"checkpoint", "info", path("run")});
  EXPECT_EQ(info.at("iteration"), 4);
  EXPECT_EQ(info.at("consumed_samples"), 8);
  EXPECT_EQ(info.at("iterations"), Json({2, 4}));
  EXPECT_EQ(info.at("model").at("hidden_size"), 8);
}

TEST_F(CheckpointCommands, ARunThatWasFinishedBeforeHasNothingToDoAndReportsNoLoss) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  const Outcome again = train("2", {"--load", path("run"), "--json", "-"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.errors, AllOf(HasSubstr("nothing to do: '" + path("run") + "' has done 2 iterations"),
                                  Not(HasSubstr("resuming"))));
  const Json result = Json::parse(again.output);
  EXPECT_TRUE(result.at("final_loss").is_null());
  EXPECT_EQ(result.at("iterations"), 2);
}

TEST_F(CheckpointCommands, EveryFlagGivenToTrainIsInTheConfigurationItSaves) {
  ASSERT_EQ(train("2", {"--lr", "0.0123", "--weight-decay", "0.5"}).exit_code, 0);
  EXPECT_THAT(read_file(path("run/config.toml")),
              AllOf(HasSubstr("\nlr = 0.0123\n"), HasSubstr("\nweight_decay = 0.5\n"), HasSubstr("\nhidden_size = 8\n"),
                    HasSubstr("\ntrain_iters = 2\n"), HasSubstr("\nsave = \"" + path("run") + "\"\n")));
}

TEST_F(CheckpointCommands, VerifyFindsOneFlippedBitAndSaysSoInBothReports) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  EXPECT_THAT(succeed({"checkpoint", "verify", path("run")}), HasSubstr("is intact"));
  const std::string weights = path("run/iter_0000002/model.safetensors");
  std::string bytes = read_file(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(weights, bytes);
  const Outcome outcome = run_teratron({"checkpoint", "verify", path("run"), "--json", "-"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr("damaged"), HasSubstr("model.safetensors")));
  const Json report = Json::parse(outcome.output);
  EXPECT_FALSE(report.at("intact").get<bool>());
  EXPECT_EQ(report.at("faults").size(), 1U);
}

TEST_F(CheckpointCommands, ConvertingToHuggingFaceAndBackKeepsEveryWeight) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("hf")});
  succeed({"convert", "--from", "hf", "--to", "teratron", path("hf"), path("back")});
  succeed({"convert", "--from", "teratron", "--to", "hf", path("back"), path("again")});
  EXPECT_EQ(read_file(path("again/model.safetensors")), read_file(path("hf/model.safetensors")));
  EXPECT_FALSE(json_of({"checkpoint", "info", path("back")}).at("has_optimizer"));
  succeed({"convert", "--from", "teratron", "--to", "hf", "--max-file-size", "1000", path("run"), path("files")});
  succeed({"convert", "--from", "hf", "--to", "teratron", path("files"), path("whole")});
  EXPECT_TRUE(std::filesystem::exists(path("files/model.safetensors.index.json")));
  EXPECT_EQ(read_file(path("whole/iter_0000000/model.safetensors")),
            read_file(path("back/iter_0000000/model.safetensors")));
}

TEST_F(CheckpointCommands, ReshardingKeepsEveryTensorInFilesOfAnotherSize) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  const Json report = json_of({"checkpoint", "reshard", path("run"), path("small"), "--max-file-size", "1000"});
  EXPECT_TRUE(json_of({"diff", path("run"), path("small")}).at("equal").get<bool>());
  EXPECT_THAT(succeed({"checkpoint", "verify", path("small")}), HasSubstr("is intact"));
  std::int64_t files = 0, of_tensors = 0;
  for (const auto& entry : std::filesystem::directory_iterator(report.at("folder").get<std::string>())) {
    files += entry.path().filename() != "checkpoint.json" ? 1 : 0;
    of_tensors += entry.path().extension() == ".safetensors" ? 1 : 0;
  }
  EXPECT_EQ(report.at("files"), files);
  EXPECT_GT(of_tensors, 2);
  EXPECT_EQ(json_of({"checkpoint", "reshard", path("small"), path("back")}).at("files"), files - of_tensors + 2);
  EXPECT_TRUE(json_of({"diff", path("run"), path("back")}).at("equal").get<bool>());
  for (const auto& [to, size, says] :
       {std::tuple{"back", "0", "back"}, {"other", "-1", "--max-file-size is -1; it must be at least 0"}}) {
    EXPECT_THAT(refused({"checkpoint", "reshard", path("run"), path(to), "--max-file-size", size}),
                AllOf(StartsWith("error: "), HasSubstr(says)));
  }
  EXPECT_FALSE(std::filesystem::exists(path("other")));
}

TEST_F(CheckpointCommands, WhatNeedsANameIsNotStandardOutput) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  for (const char* format : {"hf", "gguf"}) {
    EXPECT_THAT(refused({"convert", "--from", "teratron", "--to", format, path("run"), "-"}),
                HasSubstr("OUT is -, standard output"));
  }
  EXPECT_THAT(refused({"checkpoint", "reshard", path("run"), "-"}), HasSubstr("TO is -, standard output"));
  EXPECT_FALSE(std::filesystem::exists("./-"));
}

TEST_F(CheckpointCommands, AChatTemplateGoesAlongWithTheTokenizer) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("hf")});
  const std::string form = "{% for m in messages %}\r\n {{ m.content }}\xc3\xa9\n{% endfor %}\n\n";
  write_file_atomically(path("hf/chat_template.jinja"), form);
  write_file_atomically(path("hf/generation_config.json"), R"({ "eos_token_id": [0, 1] })");
  std::filesystem::create_directory(path("hf/additional_chat_templates"));
  write_file_atomically(path("hf/additional_chat_templates/tool_use.jinja"), "{{ tools }}" + form);
  write_file_atomically(path("hf/additional_chat_templates/rag.jinja"), "{{ documents }}");
  succeed({"convert", "--from", "hf", "--to", "teratron", path("hf"), path("back")});
  succeed({"convert", "--from", "teratron", "--to", "hf", path("back"), path("again")});
  for (const char* name : {"chat_template.jinja", "generation_config.json", "tokenizer_config.json", "config.json",
                           "additional_chat_templates/tool_use.jinja", "additional_chat_templates/rag.jinja"}) {
    EXPECT_EQ(read_file(path(std::string("again/") + name)), read_file(path(std::string("hf/") + name))) << name;
  }
  succeed({"convert", "--from", "teratron", "--to", "gguf", path("back"), path("chat.gguf")});
  EXPECT_THAT(read_file(path("chat.gguf")), AllOf(HasSubstr("tokenizer.chat_template"), HasSubstr(form)));
  EXPECT_EQ(find_chat_template(path("back/iter_0000000"))->tools_text, "{{ tools }}" + form);
  // It is no other tokenizer, so the training goes on.
  write_file_atomically(path("run/iter_0000002/chat_template.jinja"), form);
  write_file_atomically(path("run/iter_0000002/chat_template.rag.jinja"), form);
  EXPECT_EQ(train("4", {"--load", path("run")}).exit_code, 0);
}

TEST_F(CheckpointCommands, ConvertingToGgufWritesANewFileOfTheTypeAskedFor) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  const Words words = {"convert", "--from", "teratron", "--to", "gguf", path("run")};
  succeed(with(words, {path("f32.gguf")}));
  succeed(with(words, {path("f16.gguf"), "--type", "f16"}));
  const std::string exact = read_file(path("f32.gguf")), half = read_file(path("f16.gguf"));
  EXPECT_THAT(exact, AllOf(StartsWith("GGUF"), HasSubstr("tokenizer.ggml.pre"), HasSubstr("gpt-2")));
  EXPECT_LT(half.size(), exact.size());
  EXPECT_THAT(refused(with(words, {path("f32.gguf"), "--type", "f16"})), HasSubstr("is there already"));
  EXPECT_EQ(read_file(path("f32.gguf")), exact);
  EXPECT_THAT(refused({"convert", "--from", "teratron", "--to", "hf", "--type", "f16", path("run"), path("hf")}),
              HasSubstr("--type is for --to gguf"));
}

TEST_F(CheckpointCommands, ATokenizerThatLlamaCppHasNotIsRefusedBeforeAnythingIsWritten) {
  ASSERT_EQ(train("2", {}).exit_code, 0);
  const std::string config = path("run/iter_0000002/tokenizer_config.json");
  write_file_atomically(config, R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true})");
  std::filesystem::remove(path("run/iter_0000002/tokenizer.json"));
  EXPECT_THAT(refused({"convert", "--from", "teratron", "--to", "gguf", path("run"), path("out.gguf")}),
              AllOf(HasSubstr("cannot go along"), HasSubstr("add_prefix_space")));
  EXPECT_FALSE(std::filesystem::exists(path("out.gguf")));
}

// With --guard-memory whoever reads a tensor outside of an operation dies.
TEST_F(CheckpointCommands, TrainingEvaluationAndGenerationTouchTensorsInOperationsAloneAndGiveTheSame) {
  const auto results = [&](const Words& guard) {
    std::filesystem::remove_all(path("run"));
    EXPECT_EQ(train("2", guard).exit_code, 0);
    const Words more = with({"--load", path("run")}, guard);
    EXPECT_EQ(train("4", more).exit_code, 0);
    const std::vector<Words> commands = {
        {"eval", "loss", "--data-path", path("data"), "--overlapping-eval", "3", "--json", "-"},
        {"eval", "wikitext103", "--data", path("corpus.txt"), "--json", "-"},
        {"generate", "--prompt", "abc", "--max-new-tokens", "20", "--ignore-end-of-text", "--temperature", "0.9"},
        {"generate", "--prompt", "abc", "--max-new-tokens", "20", "--ignore-end-of-text", "--temperature", "0"}};
    std::string all = read_file(path("run/iter_0000004/model.safetensors"));
    for (const Words& command : commands) all += succeed(with(command, more));
    return std::regex_replace(all, std::regex("\"peak_memory_bytes\":[^,]*,"), "");
  };
  const bool same = results({"--guard-memory"}) == results({});  // not EXPECT_EQ: it would print every weight
  EXPECT_TRUE(same);
}

}  // namespace
}  // namespace teratron::testing
