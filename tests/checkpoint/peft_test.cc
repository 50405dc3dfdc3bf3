// Adapters in PEFT's files, written here by its layout: to ours and back, and every way such a folder can differ.
// PEFT's own files: tests/model/adapters_oracle_test.cc.
#include <gmock/gmock.h>

#include "checkpoint/adapter_files.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/pickled_tensors.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kAdapterRank = 2;

class PeftFolder : public ::testing::Test {
 protected:
  PeftFolder() {
    const RandomModel model(small_config());
    save_checkpoint(path("base"), model.config, model.parameters, *model.backend, {.iteration = 3});
    const std::int64_t hidden = model.config.hidden_size;
    for (std::int64_t layer = 0; layer < model.config.num_layers; ++layer) {
      const std::string module = fmt::format("base_model.model.transformer.h.{}.", layer);
      add(module + "attn.c_attn", hidden, 3 * hidden);
      add(module + "mlp.c_fc", hidden, 4 * hidden);
    }
  }

  fs::path path(const std::string& name) const { return folder_ / name; }
  // The message of an import of the folder with these changes.
  std::string refusal(const Json& changes, const std::string& base = "base") {
    write(changes);
    const std::string message =
        message_of<UserError>([&] { import_from_peft(path("peft"), path(base), path("ours")); });
    EXPECT_FALSE(fs::exists(path("ours"))) << changes;
    return message;
  }
  void write(const Json& changes = Json::object()) const {
    Json config = {
        {"peft_type", "LORA"}, {"r", kAdapterRank}, {"lora_alpha", 4}, {"target_modules", {"c_attn", "c_fc"}}};
    for (const auto& [key, value] : changes.items()) config[key] = value;
    make_folders(path("peft"));
    put_file(path("peft") / "adapter_config.json", config.dump());
    write_tensors(path("peft") / "adapter_model.safetensors", tensors_);
  }

  const TemporaryFolder folder_;
  FileTensors tensors_;

 private:
  // LoRA's A reads the inputs, B writes the outputs, whichever way the layer's own matrix lies.
  void add(const std::string& module, std::int64_t inputs, std::int64_t outputs) {
    const auto tensor = [&](std::int64_t rows, std::int64_t columns) {
      std::vector<float> values(static_cast<std::size_t>(rows * columns));
      for (float& value : values) value = static_cast<float>(random_.below(1000)) / 8.0F;
      return FileTensor{
          "F32", {rows, columns}, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
    };
    tensors_[module + ".lora_A.weight"] = tensor(kAdapterRank, inputs);
    tensors_[module + ".lora_B.weight"] = tensor(outputs, kAdapterRank);
  }

  RandomSequence random_{{.seed = 5}};
};

TEST_F(PeftFolder, ImportAndExportGiveBackEveryBit) {
  write();
  import_from_peft(path("peft"), path("base"), path("ours"));
  export_to_peft(path("ours"), path("back"));
  EXPECT_EQ(tensors_of(path("back") / "adapter_model.safetensors"), tensors_);
  const Json config = Json::parse(read_file(path("back") / "adapter_config.json"));
  EXPECT_EQ(config.at("r"), kAdapterRank);
  EXPECT_EQ(config.at("lora_alpha"), 4);
  EXPECT_EQ(config.at("peft_type"), "LORA");
  EXPECT_EQ(config.at("fan_in_fan_out"), true) << "GPT-2's matrices lie [inputs, outputs]";
}

// As PEFT writes a folder whose adapters were asked for with "all-linear", and all settings that change nothing.
TEST_F(PeftFolder, PickledAdaptersAreReadWhereNoSafetensorsStand) {
  write();
  fs::remove(path("peft") / "adapter_model.safetensors");
  EXPECT_THAT(message_of<UserError>([&] { import_from_peft(path("peft"), path("base"), path("ours")); }),
              HasSubstr("adapter_model.safetensors"));
  put_file(path("peft") / "adapter_model.bin", pickled(tensors_, /*turns=*/true));
  import_from_peft(path("peft"), path("base"), path("ours"));
  export_to_peft(path("ours"), path("back"));
  EXPECT_EQ(tensors_of(path("back") / "adapter_model.safetensors"), tensors_);
}

TEST_F(PeftFolder, ModulesMayBeListedOneByOne) {
  write({{"target_modules",
          {"transformer.h.1.attn.c_attn", "transformer.h.0.mlp.c_fc", "transformer.h.1.mlp.c_fc",
           "transformer.h.0.attn.c_attn"}},
         {"init_lora_weights", "gaussian"},
         {"rank_pattern", Json::object()},
         {"use_dora", false},
         {"loftq_config", Json::object()},
         {"alora_invocation_tokens", nullptr},
         {"megatron_core", "megatron.core"},
         {"qalora_group_size", 16}});
  import_from_peft(path("peft"), path("base"), path("ours"));
  export_to_peft(path("ours"), path("back"));
  EXPECT_EQ(testing::tensors_of(path("back") / "adapter_model.safetensors"), tensors_);
}

TEST_F(PeftFolder, AdaptersOfAnotherFunctionAreRefusedWithAllReasons) {
  EXPECT_THAT(refusal({{"peft_type", "IA3"}, {"bias", "all"}, {"use_dora", true}, {"rank_pattern", {{"c_attn", 3}}}}),
              AllOf(HasSubstr("adapter_config.json' has adapters that are none of ours: "),
                    HasSubstr("peft_type IA3, bias all, rank_pattern, use_dora")));
  for (const char* beginning : {"pissa", "pissa_niter_4", "olora", "corda", "loftq"}) {
    EXPECT_THAT(refusal({{"init_lora_weights", beginning}}), HasSubstr("init_lora_weights " + std::string(beginning)))
        << "it changes the base";
  }
  EXPECT_THAT(refusal({{"alora_invocation_tokens", {1, 2}}, {"number_of_a_later_peft", 0.5}, {"setting_of_one", "on"}}),
              HasSubstr("alora_invocation_tokens, number_of_a_later_peft, setting_of_one"));
  EXPECT_THAT(refusal({{"target_modules", 5}}), AllOf(HasSubstr("target_modules"), HasSubstr("a list of names")));
  EXPECT_THAT(refusal({{"target_modules", {"c_attn", 5}}}), HasSubstr("a list of names"));
  EXPECT_THAT(refusal({{"target_modules", "q_proj"}}), HasSubstr("has no layer 'q_proj'"));
  EXPECT_THAT(refusal({{"lora_dropout", 1.5}}), AllOf(HasSubstr("adapter_config.json': "), HasSubstr("dropout")));
}

TEST_F(PeftFolder, ABaseThatHuggingFaceHasNotIsRefused) {
  ModelConfig grouped = small_config();
  grouped.num_key_value_heads = 1;
  const RandomModel model(grouped);
  save_checkpoint(path("grouped"), grouped, model.parameters, *model.backend, {.iteration = 3});
  EXPECT_THAT(refusal(Json::object(), "grouped"), HasSubstr("--num-query-groups"));
}

TEST_F(PeftFolder, TensorsThatAreNotTheConfigsAreRefused) {
  EXPECT_THAT(refusal({{"r", 3}}), HasSubstr("does not hold adapters of the model in"));
  EXPECT_THAT(refusal({{"target_modules", "c_attn"}}), HasSubstr("mlp.c_fc.lora_"));
  tensors_.erase("base_model.model.transformer.h.1.attn.c_attn.lora_B.weight");
  EXPECT_THAT(refusal(Json::object()), HasSubstr("h.1.attn.c_attn.lora_B.weight"));
}

TEST_F(PeftFolder, ValuesThatAreNotFiniteAreRefusedByTheirFile) {
  const std::string name = "base_model.model.transformer.h.1.attn.c_attn.lora_B.weight";
  tensors_.at(name).bytes.replace(4, 4, "\xff\xff\xff\x7f");
  EXPECT_THAT(refusal(Json::object()),
              AllOf(HasSubstr("adapter_model.safetensors' are not finite: '" + name), Not(HasSubstr("--lr"))));
}

// A link to the base gives it a name that JSON can hold.
TEST_F(PeftFolder, ABaseWhoseNameIsNotUtf8IsRefused) {
  const std::string named = "mod\xe8le";
  fs::rename(path("base"), path(named));
  write();
  EXPECT_THAT(refusal(Json::object(), named), HasSubstr("is not UTF-8"));
  fs::create_directory_symlink(path(named), path("base"));
  import_from_peft(path("peft"), path("base"), path("ours"));
}

TEST_F(PeftFolder, AWholeModelIsNoAdapterAndAdaptersAreNoBase) {
  EXPECT_THAT(message_of<UserError>([&] { export_to_peft(path("base"), path("hf")); }),
              HasSubstr("holds a whole model, and no adapters for PEFT"));
  EXPECT_FALSE(fs::exists(path("hf")));
  write();
  import_from_peft(path("peft"), path("base"), path("adapted"));
  EXPECT_THAT(refusal(Json::object(), "adapted"), HasSubstr("holds adapters itself; name the whole model"));
}

}  // namespace
}  // namespace teratron::testing
