// Models of nanoGPT, llm.c and Megatron-LM: one GPT-2 in each of their files (tests/golden/foreign, made by
// tests/golden/make_foreign_golden.py with PyTorch) is the one of Hugging Face's folder beside them, bit by bit.
#include "checkpoint/foreign/foreign_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/zip_writer.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kForeign = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/foreign";

FileTensors imported_from_hugging_face(const std::string& folder) {
  const TemporaryFolder out;
  return tensors_of(import_from_hugging_face(kForeign / folder, out / "run") / "model.safetensors");
}

struct ImportedModel {
  ModelConfig model;
  FileTensors tensors;
};
ImportedModel imported_model(ForeignFormat format, const fs::path& path) {
  const TemporaryFolder out;
  const fs::path checkpoint = import_foreign(ForeignModel(format, path), path.parent_path(), out / "run");
  return {read_checkpoint_info(checkpoint).model, tensors_of(checkpoint / "model.safetensors")};
}

struct Case {
  std::string file;
  ForeignFormat format;
  Activation activation;
  std::string same = "hf";
};

class ForeignModels : public ::testing::TestWithParam<Case> {};

TEST_P(ForeignModels, HasTheTensorsOfHuggingFacesBitByBit) {
  const auto& [file, format, activation, same] = GetParam();
  const ImportedModel there = imported_model(format, kForeign / file);
  EXPECT_EQ(there.tensors, imported_from_hugging_face(same));
  EXPECT_EQ(there.model.activation, activation);
  EXPECT_EQ(there.model.layernorm_epsilon, 1e-5);
  EXPECT_EQ(there.model.hidden_dropout, 0);
  EXPECT_EQ(there.model.attention_dropout, 0);
  EXPECT_EQ(there.model.dropout_after_embedding(), 0);
}

INSTANTIATE_TEST_SUITE_P(Files, ForeignModels,
                         ::testing::Values(Case{"nanogpt.pt", ForeignFormat::kNanoGpt, Activation::kGeluErf},
                                           Case{"nanogpt_strides.pt", ForeignFormat::kNanoGpt, Activation::kGeluErf},
                                           Case{"nanogpt_compiled.pt", ForeignFormat::kNanoGpt, Activation::kGeluErf,
                                                "hf_no_biases"},
                                           Case{"llmc.bin", ForeignFormat::kLlmC, Activation::kGeluTanh},
                                           Case{"llmc_bf16.bin", ForeignFormat::kLlmC, Activation::kGeluTanh},
                                           Case{"megatron_0.pt", ForeignFormat::kMegatron, Activation::kGeluTanh},
                                           Case{"megatron_1.pt", ForeignFormat::kMegatron, Activation::kGeluTanh},
                                           Case{"megatron_3.pt", ForeignFormat::kMegatron, Activation::kGeluTanh},
                                           Case{"megatron_core.pt", ForeignFormat::kMegatron, Activation::kGeluTanh}),
                         [](const auto& one) {
                           std::string name = one.param.file.substr(0, one.param.file.find('.'));
                           std::erase(name, '_');
                           return name;
                         });

TEST(ForeignModel, FoldersLeadToTheirFiles) {
  const TemporaryFolder folder;
  const auto place = [&](const std::string& file, const fs::path& to) {
    make_folders((folder / to.string()).parent_path());
    fs::copy_file(kForeign / file, folder / to.string());
  };
  place("nanogpt.pt", "out/ckpt.pt");
  EXPECT_EQ(ForeignModel(ForeignFormat::kNanoGpt, folder / "out").model().num_layers, 2);
  place("megatron_3.pt", "run/iter_0000100/mp_rank_00/model_optim_rng.pt");
  place("megatron_3.pt", "released/release/mp_rank_00/model_optim_rng.pt");
  put_file(folder / "run/latest_checkpointed_iteration.txt", "100\n");
  put_file(folder / "released/latest_checkpointed_iteration.txt", "release");
  for (const char* path : {"run", "run/iter_0000100", "run/iter_0000100/mp_rank_00", "released"}) {
    EXPECT_EQ(ForeignModel(ForeignFormat::kMegatron, folder / path).model().num_layers, 2);
  }
  make_folders(folder / "two/mp_rank_00_000");
  EXPECT_THAT(message_of<UserError>([&] { ForeignModel(ForeignFormat::kMegatron, folder / "two"); }),
              HasSubstr("there is no model_optim_rng.pt of one rank"));
}

// nanoGPT's file with one layer, hidden size 2, three tokens and two positions; `change` may spoil it.
std::string small_nanogpt(const std::function<void(std::map<std::string, std::vector<std::int32_t>>&)>& change = {},
                          const std::map<std::string, std::int32_t>& more = {}, const std::string& numbers = "") {
  std::map<std::string, std::vector<std::int32_t>> shapes = {{"transformer.wte.weight", {3, 2}},
                                                             {"transformer.wpe.weight", {2, 2}},
                                                             {"transformer.h.0.ln_1.weight", {2}},
                                                             {"transformer.h.0.attn.c_attn.weight", {6, 2}},
                                                             {"transformer.h.0.attn.c_proj.weight", {2, 2}},
                                                             {"transformer.h.0.ln_2.weight", {2}},
                                                             {"transformer.h.0.mlp.c_fc.weight", {8, 2}},
                                                             {"transformer.h.0.mlp.c_proj.weight", {2, 8}},
                                                             {"transformer.ln_f.weight", {2}}};
  if (change) change(shapes);
  std::map<std::string, std::int32_t> arguments = {
      {"n_layer", 1}, {"n_head", 1}, {"n_embd", 2}, {"block_size", 2}, {"vocab_size", 3}};
  for (const auto& [name, value] : more) arguments[name] = value;
  std::string pickle = "}" + pickled_text("model") + "}";
  for (const auto& [name, shape] : shapes) {
    pickle += pickled_text(name);
    pickle +=
        pickled_tensor("0", 16, 0, shape, shape.size() == 2 ? std::vector<std::int32_t>{shape[1], 1} : std::vector{1});
    pickle += "s";
  }
  pickle += "s" + pickled_text("model_args") + "}" + pickled_text("bias") + "\x89s";
  for (const auto& [name, value] : arguments) pickle += pickled_text(name) + pickled_integer(value) + "s";
  const std::string storage = numbers.empty() ? std::string(64, '\0') : numbers;
  return torch_file_of(pickle + "s", {{"0", storage}});
}

class RefusedForeignModels : public ::testing::Test {
 protected:
  // Message of the import of these bytes, which writes nothing.
  std::string refusal(ForeignFormat format, const std::string& bytes) const {
    put_file(folder_ / "in", bytes);
    const std::string message = message_of<UserError>(
        [&] { import_foreign(ForeignModel(format, folder_ / "in"), folder_.path(), folder_ / "out"); });
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    return message;
  }

  const TemporaryFolder folder_;
};

TEST_F(RefusedForeignModels, NanoGptsThatAreNoWholeModel) {
  const auto refused = [&](const auto& change, const std::map<std::string, std::int32_t>& more = {}) {
    return refusal(ForeignFormat::kNanoGpt, small_nanogpt(change, more));
  };
  using Shapes = std::map<std::string, std::vector<std::int32_t>>;
  put_file(folder_ / "sound", small_nanogpt([](Shapes& shapes) {
             shapes["transformer.h.0.attn.bias"] = {2, 2};  // the mask of attention without flash
           }));
  EXPECT_EQ(ForeignModel(ForeignFormat::kNanoGpt, folder_ / "sound").model().vocab_size, 3);
  EXPECT_THAT(refused([](Shapes& shapes) {
                shapes["transformer.h.0.mlp.c_fc.weight"] = {2, 8};
              }),
              HasSubstr("'transformer.h.0.mlp.c_fc.weight' is [2, 8] there, [8, 2] is needed"));
  EXPECT_THAT(refused([](Shapes& shapes) { shapes.erase("transformer.ln_f.weight"); }),
              HasSubstr("'transformer.ln_f.weight' is missing"));
  EXPECT_THAT(refused([](Shapes& shapes) { shapes["transformer.h.1.ln_1.weight"] = {2}; }),
              HasSubstr("'transformer.h.1.ln_1.weight' is not part of the model"));
  EXPECT_THAT(refused([](Shapes& shapes) { shapes["transformer.ln_f.bias"] = {2}; }),
              HasSubstr("has transformer.ln_f.bias, and its model_args say \"bias\": false"));
  EXPECT_THAT(refused([](Shapes&) {}, {{"n_layer", 1000}}), HasSubstr("is to have 1,000 layers and has 9 tensors"));
  EXPECT_THAT(refused([](Shapes&) {}, {{"use_relu", 1}}), HasSubstr("its model_args has 'use_relu'"));
  EXPECT_THAT(refused([](Shapes&) {}, {{"n_head", 3}}), HasSubstr("is not divisible by"));
  EXPECT_THAT(refused([](Shapes&) {}, {{"n_embd", -1}}), HasSubstr("n_embd"));
  EXPECT_THAT(refused([](Shapes& shapes) {
                shapes["lm_head.weight"] = {2, 2};
              }),
              HasSubstr("lm_head.weight differs from"));
  EXPECT_THAT(refusal(ForeignFormat::kNanoGpt, torch_file_of("}")), HasSubstr("is no checkpoint of nanoGPT"));
  EXPECT_THAT(refusal(ForeignFormat::kNanoGpt, torch_file_of("N")), HasSubstr("is no checkpoint of nanoGPT"));
  std::string numbers(64, '\0');
  numbers.replace(4, 4, little(std::numeric_limits<float>::infinity()));
  EXPECT_THAT(refusal(ForeignFormat::kNanoGpt, small_nanogpt({}, {}, numbers)),
              HasSubstr("has a value that is infinite or not a number"));
  std::string damaged = small_nanogpt();
  damaged[damaged.find(std::string(64, '\0'))] = 1;
  EXPECT_THAT(refusal(ForeignFormat::kNanoGpt, damaged), HasSubstr("is damaged: the bytes of 'archive/data/0'"));
}

TEST_F(RefusedForeignModels, FilesOfLlmCThatAreNotSound) {
  const std::string sound = bytes_of_file(kForeign / "llmc.bin");
  const auto with_number = [&](std::size_t index, std::int32_t value) {
    std::string bytes = sound;
    return bytes.replace(4 * index, 4, little(value));
  };
  const auto refused = [&](const std::string& bytes) { return refusal(ForeignFormat::kLlmC, bytes); };
  EXPECT_THAT(refused(with_number(0, 1)), HasSubstr("is no model file of llm.c"));
  EXPECT_THAT(refused(""), HasSubstr("is no model file of llm.c"));
  EXPECT_THAT(refused(with_number(1, 1)), HasSubstr("is of version 1"));
  EXPECT_THAT(refused(with_number(5, 3)), HasSubstr("is not divisible by"));
  for (const std::size_t index : {2, 3, 4, 5, 6, 7}) {
    EXPECT_THAT(refused(with_number(index, 0)), HasSubstr("its header has sizes that no model has"));
    EXPECT_THAT(refused(with_number(index, std::numeric_limits<std::int32_t>::max())),
                ::testing::AnyOf(HasSubstr("its header has sizes"), HasSubstr("cut short"), HasSubstr("divisible"),
                                 HasSubstr("must be at most")));
  }
  for (std::size_t bytes = 1; bytes < sound.size(); bytes += 997) {
    EXPECT_THAT(refused(sound.substr(0, bytes)),
                ::testing::AnyOf(HasSubstr("is no model file"), HasSubstr("cut short")));
  }
  EXPECT_THAT(refused(sound + "x"), HasSubstr("is 1 byte longer than its model"));
}

TEST_F(RefusedForeignModels, MegatronsOfOtherModelsOrSeveralRanks) {
  const auto of_arguments = [&](const std::string& more) {
    std::string pickle = "}" + pickled_text("model") + "}s" + pickled_text("args");
    pickle += pickled_name("argparse", "Namespace") + ")\x81}";
    for (const auto& [name, value] : std::map<std::string, std::int32_t>{
             {"num_layers", 1}, {"hidden_size", 2}, {"num_attention_heads", 1}, {"max_position_embeddings", 2}}) {
      pickle += pickled_text(name) + pickled_integer(value) + "s";
    }
    return refusal(ForeignFormat::kMegatron, torch_file_of(pickle + more + "bs"));
  };
  EXPECT_THAT(
      of_arguments(pickled_text("tensor_model_parallel_size") + pickled_integer(2) + "s" + pickled_text("swiglu") +
                   "\x88s" + pickled_text("normalization") + pickled_text("RMSNorm") + "s"),
      ::testing::AllOf(HasSubstr("tensor_model_parallel_size 2"), HasSubstr("swiglu true"),
                       HasSubstr("normalization 'RMSNorm' (there is LayerNorm)")));
  EXPECT_THAT(of_arguments(pickled_text("kv_channels") + pickled_integer(1) + "s"), HasSubstr("kv_channels"));
  const std::string window = pickled_text("window_size"), softmax = pickled_text("softmax_type");
  EXPECT_THAT(of_arguments(window + pickled_tuple({127, 0}) + "s" + softmax + pickled_text("off-by-one") + "s" +
                           pickled_text("qk_l2_norm") + "\x88s" + pickled_text("use_mup") + "\x88s"),
              ::testing::AllOf(HasSubstr("window_size (there is none)"),
                               HasSubstr("softmax_type 'off-by-one' (there is vanilla)"), HasSubstr("qk_l2_norm true"),
                               HasSubstr("use_mup true")));
  for (const std::string& usual : {std::string(), window + "Ns" + softmax + pickled_text("vanilla") + "s"}) {
    EXPECT_THAT(of_arguments(usual), HasSubstr("is to have 1 layer and has 0 tensors"));
  }
  EXPECT_THAT(refusal(ForeignFormat::kMegatron, bytes_of_file(kForeign / "nanogpt.pt")),
              HasSubstr("is no checkpoint of one rank of Megatron-LM"));
}

TEST_F(RefusedForeignModels, MegatronsWhoseDictionariesHoldOneAnother) {
  const std::string arguments = pickled_text("args") + pickled_name("argparse", "Namespace") + ")\x81}" +
                                pickled_text("num_layers") + pickled_integer(1) + "s" + pickled_text("hidden_size") +
                                pickled_integer(2) + "s" + pickled_text("num_attention_heads") + pickled_integer(1) +
                                "s" + pickled_text("max_position_embeddings") + pickled_integer(2) + "sbs";
  const auto of_model = [&](const std::string& model) {
    return refusal(ForeignFormat::kMegatron, torch_file_of("}" + pickled_text("model") + model + "s" + arguments));
  };
  const std::string itself = std::string("}q\x01", 3) + pickled_text("a") + "h\x01s";
  EXPECT_THAT(of_model(itself), HasSubstr("in too many dictionaries"));
  // Each of six holds the next a hundred times: the first entry makes it, the others name it.
  std::string many = "}q\x01";
  for (char level = 1; level <= 6; ++level) {
    const std::string inner = many;
    many = "}" + pickled_text("0") + inner + "s";
    for (int i = 1; i < 100; ++i) many += pickled_text(std::to_string(i)) + "h" + std::string(1, level) + "s";
    many += "q" + std::string(1, static_cast<char>(level + 1));
  }
  EXPECT_THAT(of_model(many), HasSubstr("in too many dictionaries"));
}

TEST_F(RefusedForeignModels, APlaceThatHoldsACheckpointIsKept) {
  const ForeignModel model(ForeignFormat::kLlmC, kForeign / "llmc.bin");
  import_foreign(model, folder_.path(), folder_ / "run");
  const auto before = all_files(folder_ / "run");
  EXPECT_THROW(import_foreign(model, folder_.path(), folder_ / "run"), UserError);
  EXPECT_EQ(all_files(folder_ / "run"), before);
}

}  // namespace
}  // namespace teratron::testing
