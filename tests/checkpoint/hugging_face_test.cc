// GPT-2 to and from Hugging Face's files: against a model that transformers itself saved (tests/golden/gpt2_tiny), and
// against every way such a folder can differ.
#include "checkpoint/hugging_face/hugging_face.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/random_model.h"
#include "model/family.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const fs::path& golden() {
  static const fs::path path = fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / "gpt2_tiny";
  return path;
}

void make_variant(const fs::path& folder, const std::function<void(Json&)>& change_config,
                  const std::function<void(FileTensors&)>& change_tensors) {
  make_variant(golden(), folder, change_config, change_tensors);
}

std::string refusal(const std::function<void(Json&)>& change_config,
                    const std::function<void(FileTensors&)>& change_tensors) {
  return refusal(golden(), change_config, change_tensors);
}

constexpr auto kSame = [](auto&) {};

TEST(HuggingFace, ImportAndExportGiveBackEveryBitOfAModelThatTransformersSaved) {
  const TemporaryFolder folder;
  const fs::path checkpoint = import_from_hugging_face(golden(), folder / "run");
  EXPECT_TRUE(verify_checkpoint(folder / "run").intact());
  export_to_hugging_face(folder / "run", folder / "hf");
  EXPECT_EQ(tensors_of(folder / "hf" / "model.safetensors"), tensors_of(golden() / "model.safetensors"));
  EXPECT_EQ(SafetensorsFile(folder / "hf" / "model.safetensors").metadata(), (SafetensorsMetadata{{"format", "pt"}}));

  const Json ours = Json::parse(bytes_of_file(folder / "hf" / "config.json"));
  const Json theirs = Json::parse(bytes_of_file(golden() / "config.json"));
  for (const auto& [key, value] : ours.items()) {
    if (key == "n_ctx" || key == "torch_dtype" || key.ends_with("_token_id")) continue;
    EXPECT_EQ(value, theirs.value(key, Json("absent"))) << key;
  }
}

TEST(HuggingFace, LinearWeightsAreTransposedAndPositionsAreNot) {
  const TemporaryFolder folder;
  import_from_hugging_face(golden(), folder / "run");
  const CheckpointInfo info = read_checkpoint_info(folder / "run");
  EXPECT_FALSE(info.has_optimizer);
  EXPECT_EQ(info.state, TrainingState{});
  RandomModel model(info.model);
  load_checkpoint(folder / "run", info.model, model.parameters, *model.backend, {.optimizer = false});

  const FileTensors there = tensors_of(golden() / "model.safetensors");
  const auto here = model.bytes();
  EXPECT_EQ(here.at("embedding.positions.weight"), there.at("transformer.wpe.weight").bytes);
  const std::string& from = there.at("transformer.h.1.attn.c_attn.weight").bytes;  // [32, 96]
  const std::string& to = here.at("layers.1.attention.qkv.weight");                // [96, 32]
  for (std::size_t row = 0; row < 96; ++row) {
    for (std::size_t column = 0; column < 32; ++column) {
      ASSERT_EQ(to.substr((row * 32 + column) * 4, 4), from.substr((column * 96 + row) * 4, 4));
    }
  }
}

TEST(HuggingFace, ExportAndImportGiveBackEveryBitOfOurs) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const TemporaryFolder folder;
    ModelConfig config = small_config();
    config.activation = Activation::kGeluErf;
    config.hidden_dropout = 0.25;
    config.attention_dropout = 0.0;
    config.layernorm_epsilon = 1e-6;
    config.init_method_std = 0.0123;
    config.make_vocab_size_divisible_by = 128;
    RandomModel model(config, dtype), back(config, dtype);
    model.fill(1);
    put_file(folder / "vocab.json", R"({"a": 0, "<|endoftext|>": 28})");
    put_file(folder / "merges.txt", "#version: 0.2\n");
    save_checkpoint(folder / "run", config, model.parameters, *model.backend, {.iteration = 9},
                    {.tokenizer = folder.path()});
    export_to_hugging_face(folder / "run", folder / "hf");
    EXPECT_EQ(Json::parse(bytes_of_file(folder / "hf" / "config.json"))["eos_token_id"], 28);

    const fs::path imported = import_from_hugging_face(folder / "hf", folder / "again");
    EXPECT_EQ(bytes_of_file(imported / "model.safetensors"),
              bytes_of_file(folder / "run" / "iter_0000009" / "model.safetensors"));
    EXPECT_EQ(bytes_of_file(imported / "merges.txt"), bytes_of_file(folder / "merges.txt"));
    load_checkpoint(folder / "again", config, back.parameters, *back.backend, {.optimizer = false});
    const ModelConfig read = read_checkpoint_info(folder / "again").model;
    EXPECT_EQ(read.init_method_std, config.init_method_std);
    EXPECT_EQ(read.hidden_dropout, config.hidden_dropout);
    EXPECT_EQ(read.attention_dropout, config.attention_dropout);
  }
}

TEST(HuggingFace, NamesWithoutPrefixMasksAndATiedHeadMakeNoDifference) {
  const TemporaryFolder folder;
  import_from_hugging_face(golden(), folder / "plain");
  make_variant(folder / "hf", kSame, [](FileTensors& tensors) {
    FileTensors bare;
    for (const auto& [name, tensor] : tensors) bare[name.substr(std::strlen("transformer."))] = tensor;
    bare["lm_head.weight"] = bare.at("wte.weight");
    bare["h.0.attn.bias"] = {"F32", {1, 1, 2, 2}, std::string(16, 'm')};
    bare["h.1.attn.masked_bias"] = {"F32", {}, std::string(4, 'm')};
    tensors = bare;
  });
  const fs::path imported = import_from_hugging_face(folder / "hf", folder / "run");
  EXPECT_EQ(tensors_of(imported / "model.safetensors"),
            tensors_of(folder / "plain" / "iter_0000000" / "model.safetensors"));
}

TEST(HuggingFace, SixteenBitWeightsBecomeSingle) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const TemporaryFolder folder;
    FileTensors expected;
    make_variant(folder / "hf", kSame, [&](FileTensors& tensors) {
      for (auto& [name, tensor] : tensors) {
        std::string narrow;
        for (std::size_t i = 0; i < tensor.bytes.size(); i += 4) {
          float value = 0;
          std::memcpy(&value, tensor.bytes.data() + i, 4);
          const std::uint16_t bits = dtype == DType::kF16 ? float_to_f16(value) : float_to_bf16(value);
          narrow.append(reinterpret_cast<const char*>(&bits), 2);
          value = dtype == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
          std::memcpy(tensor.bytes.data() + i, &value, 4);
        }
        expected[name] = tensor;
        tensor.dtype = dtype == DType::kF16 ? "F16" : "BF16";
        tensor.bytes = narrow;
      }
    });
    import_from_hugging_face(folder / "hf", folder / "run");
    export_to_hugging_face(folder / "run", folder / "back");
    EXPECT_EQ(tensors_of(folder / "back" / "model.safetensors"), expected);
  }
}

// Only training uses them, and it has one for each.
TEST(HuggingFace, DropoutsThatDifferAreKept) {
  const TemporaryFolder folder;
  make_variant(
      folder / "hf",
      [](Json& config) {
        config["embd_pdrop"] = 0.3;
        config["resid_pdrop"] = 0.2;
        config["attn_pdrop"] = 0.1;
      },
      kSame);
  import_from_hugging_face(folder / "hf", folder / "run");
  const ModelConfig read = read_checkpoint_info(folder / "run").model;
  EXPECT_EQ(read.dropout_after_embedding(), 0.3);
  EXPECT_EQ(read.hidden_dropout, 0.2);
  EXPECT_EQ(read.attention_dropout, 0.1);
  export_to_hugging_face(folder / "run", folder / "back");
  const Json back = Json::parse(bytes_of_file(folder / "back" / "config.json"));
  EXPECT_EQ(back["embd_pdrop"], 0.3);
  EXPECT_EQ(back["resid_pdrop"], 0.2);
  EXPECT_EQ(back["attn_pdrop"], 0.1);
}

TEST(HuggingFace, EachTensorThatIsNotFiniteIsNamedAsItIsStored) {
  const std::string nan("\0\0\xc0\x7f", 4);
  for (const auto& [name, tensor] : tensors_of(golden() / "model.safetensors")) {
    const TemporaryFolder folder;
    const std::string wrong = name;
    make_variant(folder / "hf", kSame, [&](FileTensors& tensors) {
      std::string& bytes = tensors.at(wrong).bytes;
      bytes.replace(bytes.size() / 8 * 4, 4, nan);
    });
    const auto names_it = HasSubstr("'" + (folder / "hf").string() + "' are not finite: '" + wrong + "' holds");
    EXPECT_THAT(message_of<UserError>([&] { import_from_hugging_face(folder / "hf", folder / "run"); }), names_it);
    EXPECT_FALSE(fs::exists(folder / "run"));
    RandomModel model(HuggingFaceFolder(golden()).model());
    EXPECT_THAT(
        message_of<UserError>([&] { load_weights(folder / "hf", model.config, model.parameters, *model.backend); }),
        names_it);
  }
}

TEST(HuggingFace, SettingsThatComputeTheSameByAnotherNameAreRead) {
  for (const auto& [name, activation] :
       std::vector<std::pair<const char*, Activation>>{{"gelu_new", Activation::kGeluTanh},
                                                       {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                       {"gelu_fast", Activation::kGeluTanh},
                                                       {"gelu_accurate", Activation::kGeluTanh},
                                                       {"gelu_python_tanh", Activation::kGeluTanh},
                                                       {"gelu", Activation::kGeluErf},
                                                       {"gelu_python", Activation::kGeluErf}}) {
    const TemporaryFolder folder;
    make_variant(
        folder / "hf",
        [&](Json& config) {
          config["activation_function"] = name;
          config["reorder_and_upcast_attn"] = true;
        },
        kSame);
    EXPECT_EQ(HuggingFaceFolder(folder / "hf").model().activation, activation) << name;
  }
}

TEST(HuggingFace, AModelThatComputesSomethingElseIsRefusedWithAllReasons) {
  const std::string message = refusal(
      [](Json& config) {
        config["scale_attn_by_inverse_layer_idx"] = true;
        config["add_cross_attention"] = true;
        config["scale_attn_weights"] = false;
        config["activation_function"] = "relu";
        config["embd_pdrop"] = -0.5;
        config["n_head"] = 5;
      },
      kSame);
  EXPECT_THAT(message, AllOf(HasSubstr("scale_attn_by_inverse_layer_idx true"), HasSubstr("add_cross_attention true"),
                             HasSubstr("scale_attn_weights false"), HasSubstr("'relu'"), HasSubstr("embd_pdrop -0.5"),
                             HasSubstr("32 is not divisible")));
  EXPECT_THAT(refusal([](Json& config) { config["model_type"] = "gemma"; }, kSame), HasSubstr("of type 'gemma'"));
  EXPECT_THAT(refusal([](Json& config) { config.erase("n_layer"); }, kSame), HasSubstr("lacks \"n_layer\""));
  EXPECT_THAT(refusal([](Json& config) { config["n_layer"] = 1.5; }, kSame), HasSubstr("must be an integer"));
  EXPECT_THAT(refusal([](Json& config) { config["n_layer"] = 2000000000; }, kSame),
              HasSubstr("--num-layers is 2000000000"));
  EXPECT_THAT(refusal([](Json& config) { config["tie_word_embeddings"] = false; }, kSame), HasSubstr("unties"));
}

// Layers that read one input have the tensors of those that follow each other.
TEST(HuggingFace, ParallelLayersAreGptNeoxsAlone) {
  for (const ModelKind kind : {ModelKind::kGpt2, ModelKind::kLlama, ModelKind::kMistral, ModelKind::kQwen2}) {
    const TemporaryFolder folder;
    ModelConfig config = small_config();
    config.set_kind(kind);
    config.norm_placement = NormPlacement::kParallel;
    const RandomModel model(config);
    save_checkpoint(folder / "run", config, model.parameters, *model.backend, {.iteration = 9});
    EXPECT_THAT(message_of<UserError>([&] { export_to_hugging_face(folder / "run", folder / "hf"); }),
                HasSubstr("--layernorm-placement"));
    EXPECT_FALSE(fs::exists(folder / "hf"));
  }
}

// Every kind as config.json can say it.
ModelConfig expressible(ModelKind kind) {
  ModelConfig config = small_config();
  config.hidden_size = 24;
  config.set_kind(kind);
  if (!config.family().continues_text) config.norm_placement = NormPlacement::kPost;
  if (kind == ModelKind::kDistilBert) config.layernorm_epsilon = 1e-12;
  return config;
}

TEST(HuggingFace, WhatAConfigHasNoFieldForIsRefusedByName) {
  using Kind = ModelKind;
  using Kinds = std::vector<Kind>;
  const Kinds berts = {Kind::kBert, Kind::kRoberta, Kind::kDistilBert},
              llamas = {Kind::kLlama, Kind::kMistral, Kind::kQwen2, Kind::kQwen3};
  const Kinds fixed = {Kind::kGpt2, Kind::kGptNeox, Kind::kBert, Kind::kRoberta, Kind::kDistilBert};  // in heads
  Kinds all = fixed, rotary = llamas;
  std::ranges::copy(llamas, std::back_inserter(all));
  rotary.push_back(Kind::kGptNeox);
  struct Change {
    std::string why;
    Kinds refused;
    std::function<void(ModelConfig&)> make;
  };
  const std::vector<Change> changes = {
      {"--num-query-groups", fixed, [](ModelConfig& model) { model.num_key_value_heads = 1; }},
      {"--kv-channels", fixed, [](ModelConfig& model) { model.head_dim = 16; }},
      {"--window-size",
       {Kind::kGpt2, Kind::kGptNeox, Kind::kLlama, Kind::kQwen2, Kind::kQwen3},
       [](ModelConfig& model) { model.window = 3; }},
      {"--untie-embeddings-and-output-weights", {Kind::kGpt2}, [](ModelConfig& model) { model.untied_output = true; }},
      {"--layernorm-placement", berts, [](ModelConfig& model) { model.norm_placement = NormPlacement::kPre; }},
      {"positions of another kind", rotary, [](ModelConfig& model) { model.rotary_share = 0; }},
      {"another share", llamas, [](ModelConfig& model) { model.rotary_share = 0.5; }},
      {"neighbouring elements", rotary, [](ModelConfig& model) { model.rotary.pairs = RotaryPairs::kNeighbours; }},
      {"without YaRN", rotary, [](ModelConfig& model) { model.rotary.attention = 2; }},
      {"another activation", fixed, [](ModelConfig& model) { model.activation = Activation::kSilu; }},
      {"another activation", llamas, [](ModelConfig& model) { model.activation = Activation::kGeluErf; }},
      {"norms of another kind", fixed, [](ModelConfig& model) { model.norm = NormKind::kRms; }},
      {"feed-forward block", all, [](ModelConfig& model) { model.gated_mlp = !model.gated_mlp; }},
      {"biases", all, [](ModelConfig& model) { model.qkv_bias = !model.qkv_bias; }},
      {"queries and keys", all, [](ModelConfig& model) { model.head_norms = !model.head_norms; }}};
  for (const Kind kind : all) {
    EXPECT_NO_THROW(hugging_face_config(expressible(kind), DType::kF32, {}));
    for (const Change& change : changes) {
      if (std::ranges::find(change.refused, kind) == change.refused.end()) continue;  // below: what they may have
      ModelConfig model = expressible(kind);
      change.make(model);
      EXPECT_THAT(message_of<UserError>([&] { hugging_face_config(model, DType::kF32, {}); }), HasSubstr(change.why))
          << model.family().title;
    }
  }
}

TEST(HuggingFace, WhatAConfigHasAFieldForIsWritten) {
  const auto written = [](ModelKind kind, const std::function<void(ModelConfig&)>& change) {
    ModelConfig model = expressible(kind);
    change(model);
    EXPECT_NO_THROW(hugging_face_config(model, DType::kF32, {})) << model.family().title;
  };
  for (const ModelKind kind : {ModelKind::kLlama, ModelKind::kMistral, ModelKind::kQwen2, ModelKind::kQwen3}) {
    written(kind, [](ModelConfig& model) { model.num_key_value_heads = 1; });
    written(kind, [](ModelConfig& model) { model.head_dim = 16; });
    written(kind, [](ModelConfig& model) { model.untied_output = !model.untied_output; });
  }
  written(ModelKind::kMistral, [](ModelConfig& model) { model.window = 3; });
  written(ModelKind::kGptNeox, [](ModelConfig& model) { model.norm_placement = NormPlacement::kPre; });
  written(ModelKind::kGptNeox, [](ModelConfig& model) { model.rotary_share = 0.5; });
  written(ModelKind::kGptNeox, [](ModelConfig& model) { model.untied_output = false; });
}

TEST(HuggingFace, WeightsThatAreNotTheConfigsAreRefused) {
  EXPECT_THAT(refusal(kSame, [](FileTensors& tensors) { tensors.erase("transformer.h.1.ln_2.bias"); }),
              HasSubstr("'transformer.h.1.ln_2.bias' is missing"));
  EXPECT_THAT(refusal(kSame,
                      [](FileTensors& tensors) {
                        tensors["score.weight"] = {"F32", {1}, "abcd"};
                      }),
              HasSubstr("'transformer.score.weight' is not part of the model"));
  EXPECT_THAT(refusal([](Json& config) { config["vocab_size"] = 130; }, kSame),
              HasSubstr("'transformer.wte.weight' is [131, 32] there, [130, 32] is needed"));
  EXPECT_THAT(refusal([](Json& config) { config["n_layer"] = 1; }, kSame), HasSubstr("and 4 more"));
  EXPECT_THAT(refusal(kSame,
                      [](FileTensors& tensors) {
                        tensors["lm_head.weight"] = tensors.at("transformer.wte.weight");
                        tensors["lm_head.weight"].bytes[5] ^= 1;
                      }),
              HasSubstr("lm_head.weight differs from"));
  EXPECT_THAT(
      refusal(kSame, [](FileTensors& tensors) { tensors["wte.weight"] = tensors.at("transformer.wte.weight"); }),
      HasSubstr("a second time"));
}

TEST(HuggingFace, MissingFilesAreNamed) {
  const TemporaryFolder folder;
  const auto message = [&] {
    return message_of<UserError>([&] { import_from_hugging_face(folder.path(), folder / "out"); });
  };
  EXPECT_THAT(message(), HasSubstr("config.json"));
  fs::copy(golden() / "config.json", folder / "config.json");
  EXPECT_THAT(message(), HasSubstr("has neither model.safetensors nor pytorch_model.bin"));
  put_file(folder / "config.json", "{");
  EXPECT_THAT(message(), AllOf(HasSubstr("is not a JSON object"), HasSubstr("again")));
}

TEST(HuggingFace, CheckpointsAreNeverOverwritten) {
  const TemporaryFolder folder;
  const fs::path checkpoint = import_from_hugging_face(golden(), folder / "run");
  EXPECT_THAT(message_of<UserError>([&] { import_from_hugging_face(golden(), folder / "run"); }),
              HasSubstr("holds a checkpoint already"));
  for (const fs::path& target : {folder / "run", checkpoint}) {
    EXPECT_THAT(message_of<UserError>([&] { export_to_hugging_face(checkpoint, target); }),
                HasSubstr("holds a checkpoint"));
  }
  flip_bit(checkpoint / "model.safetensors", 9999, 1);
  EXPECT_THAT(message_of<UserError>([&] { export_to_hugging_face(checkpoint, folder / "hf"); }),
              HasSubstr("is damaged"));
  EXPECT_FALSE(fs::exists(folder / "hf"));
}

}  // namespace
}  // namespace teratron::testing
