// GGUF files hold the golden models of Hugging Face, tensor by tensor, as a second reader finds them; and nothing that
// llama.cpp does not compute.
#include "checkpoint/gguf/gguf.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <regex>

#include "base/error.h"
#include "checkpoint/gguf/encoding.h"
#include "checkpoint/gguf_reader.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path golden(const std::string& name) { return fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / name; }

std::string exported(GgufSource source, const fs::path& in, GgufType type = GgufType::kF32) {
  const TemporaryFolder folder;
  export_to_gguf(source, in, folder / "model.gguf", type, {});
  return bytes_of_file(folder / "model.gguf");
}

// The golden folder's tensor: rows of columns, a vector as one row.
struct Rows {
  std::vector<std::vector<double>> rows;

  Rows(const FileTensors& tensors, const std::string& name, bool is_transposed = false) {
    const FileTensor& tensor = tensors.at(name);
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    const auto columns = static_cast<std::size_t>(tensor.shape.back());
    for (std::size_t i = 0; i < values.size(); i += columns) rows.emplace_back(&values[i], &values[i] + columns);
    if (is_transposed && tensor.shape.size() > 1) transpose();
  }

  // A head's rows j and j + half, beside each other.
  void pair(std::size_t head) {
    const auto before = rows;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::size_t in_head = r % head;
      rows[r] = before[r - in_head + (in_head % 2) * (head / 2) + in_head / 2];
    }
  }
  // Rows of heads, each with its queries, keys and values, to all queries, all keys, all values.
  void part_by_head(std::size_t heads) {
    const auto before = rows;
    const std::size_t size = rows.size() / heads / 3;
    std::size_t r = 0;
    for (std::size_t part = 0; part < 3; ++part) {
      for (std::size_t head = 0; head < heads; ++head) {
        for (std::size_t i = 0; i < size; ++i) rows[r++] = before[(3 * head + part) * size + i];
      }
    }
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
  }

 private:
  void transpose() {
    std::vector<std::vector<double>> turned(rows[0].size());
    for (const auto& row : rows) {
      for (std::size_t column = 0; column < row.size(); ++column) turned[column].push_back(row[column]);
    }
    rows = turned;
  }
};

// Names in both files; # is a layer's number.
using Names = std::vector<std::pair<std::string, std::string>>;
const Names kLlamaNames = {{"token_embd", "model.embed_tokens"},
                           {"output_norm", "model.norm"},
                           {"output", "lm_head"},
                           {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                           {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
                           {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
                           {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
                           {"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm"},
                           {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm"},
                           {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
                           {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
                           {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
                           {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
                           {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"}};
const Names kNeoxNames = {{"token_embd", "gpt_neox.embed_in"},
                          {"output_norm", "gpt_neox.final_layer_norm"},
                          {"output", "embed_out"},
                          {"blk.#.attn_norm", "gpt_neox.layers.#.input_layernorm"},
                          {"blk.#.attn_qkv", "gpt_neox.layers.#.attention.query_key_value"},
                          {"blk.#.attn_output", "gpt_neox.layers.#.attention.dense"},
                          {"blk.#.ffn_norm", "gpt_neox.layers.#.post_attention_layernorm"},
                          {"blk.#.ffn_up", "gpt_neox.layers.#.mlp.dense_h_to_4h"},
                          {"blk.#.ffn_down", "gpt_neox.layers.#.mlp.dense_4h_to_h"}};
const Names kGpt2Names = {{"token_embd", "transformer.wte"},
                          {"position_embd", "transformer.wpe"},
                          {"output_norm", "transformer.ln_f"},
                          {"blk.#.attn_norm", "transformer.h.#.ln_1"},
                          {"blk.#.attn_qkv", "transformer.h.#.attn.c_attn"},
                          {"blk.#.attn_output", "transformer.h.#.attn.c_proj"},
                          {"blk.#.ffn_norm", "transformer.h.#.ln_2"},
                          {"blk.#.ffn_up", "transformer.h.#.mlp.c_fc"},
                          {"blk.#.ffn_down", "transformer.h.#.mlp.c_proj"}};

struct GoldenModel {
  std::string folder, architecture;
  const Names& names;
  std::size_t heads;
  bool pairs = false;
};
const GoldenModel kGoldenModels[] = {{"gpt2_tiny", "gpt2", kGpt2Names, 0},
                                     {"llama_tiny", "llama", kLlamaNames, 4, true},
                                     {"mistral_tiny", "llama", kLlamaNames, 4, true},
                                     {"qwen2_tiny", "qwen2", kLlamaNames, 4},
                                     {"qwen3_tiny", "qwen3", kLlamaNames, 4},
                                     {"gpt_neox_tiny", "gptneox", kNeoxNames, 4}};

std::string their_name(const Names& names, const std::string& tensor) {
  static const std::regex kLayer("blk\\.([0-9]+)");
  std::smatch layer;
  const std::string number = std::regex_search(tensor, layer, kLayer) ? layer[1].str() : "";
  const std::size_t dot = tensor.rfind('.');
  const std::string module = std::regex_replace(tensor.substr(0, dot), kLayer, "blk.#");
  for (const auto& [gguf, theirs] : names) {
    if (gguf == module) return std::regex_replace(theirs, std::regex("#"), number) + tensor.substr(dot);
  }
  return "(no name)";
}

FileTensors golden_tensors(const GoldenModel& model) {
  FileTensors tensors = tensors_of(golden(model.folder) / "model.safetensors");
  if (model.folder != "gpt2_tiny") return tensors;
  FileTensors named;
  for (const auto& [name, tensor] : tensors) {
    named[name.starts_with("transformer.") ? name : "transformer." + name] = tensor;
  }
  return named;
}

TEST(Gguf, EveryTensorIsThatOfHuggingFacesFileInTheOrderOfLlamaCpp) {
  for (const GoldenModel& model : kGoldenModels) {
    const GgufReader file(exported(GgufSource::kHuggingFace, golden(model.folder)));
    EXPECT_EQ(file.metadata.at("general.architecture"), model.architecture);
    const FileTensors theirs = golden_tensors(model);
    for (const auto& [name, tensor] : file.tensors) {
      if (name == "rope_freqs.weight") continue;
      const std::string there = their_name(model.names, name);
      ASSERT_TRUE(theirs.contains(there)) << model.folder << ": " << name << " from " << there;
      Rows rows(theirs, there, model.folder == "gpt2_tiny" && name.starts_with("blk."));
      if (theirs.at(there).shape.size() == 1) rows = Rows(theirs, there);
      if (name.find("attn_qkv") != std::string::npos && model.heads > 0) {
        if (name.ends_with("bias")) {  // a row each
          const std::vector<double> values = rows.values();
          rows.rows.assign(values.size(), {});
          for (std::size_t i = 0; i < values.size(); ++i) rows.rows[i] = {values[i]};
        }
        rows.part_by_head(model.heads);
      }
      const bool is_paired = name.find("attn_q.") != std::string::npos || name.find("attn_k.") != std::string::npos;
      if (model.pairs && is_paired) rows.pair(file.metadata.at("llama.attention.key_length").get<std::size_t>());
      EXPECT_EQ(tensor.values, rows.values()) << model.folder << ": " << name;
      EXPECT_EQ(tensor.sizes[0], theirs.at(there).shape.size() == 1 ? rows.values().size() : rows.rows[0].size())
          << name;
    }
  }
}

TEST(Gguf, CheckpointsBecomeTheFilesOfTheFoldersTheyCameFrom) {
  for (const GoldenModel& model : kGoldenModels) {
    const TemporaryFolder folder;
    import_from_hugging_face(golden(model.folder), folder / "run");
    const bool same =
        exported(GgufSource::kCheckpoint, folder / "run") == exported(GgufSource::kHuggingFace, golden(model.folder));
    EXPECT_TRUE(same) << model.folder;
  }
}

TEST(Gguf, ValuesSayWhatTheModelIs) {
  const Json llama = GgufReader(exported(GgufSource::kHuggingFace, golden("llama_tiny"))).metadata;
  EXPECT_EQ(llama.at("llama.attention.head_count"), 4);
  EXPECT_EQ(llama.at("llama.attention.head_count_kv"), 2);
  EXPECT_EQ(llama.at("llama.rope.freq_base"), 500.0);
  EXPECT_EQ(llama.at("llama.context_length"), 48);
  EXPECT_FLOAT_EQ(llama.at("llama.attention.layer_norm_rms_epsilon").get<float>(), 1e-5F);
  const Json neox = GgufReader(exported(GgufSource::kHuggingFace, golden("gpt_neox_tiny"))).metadata;
  EXPECT_EQ(neox.at("gptneox.rope.dimension_count"), 2);
  EXPECT_EQ(neox.at("gptneox.use_parallel_residual"), true);
  // A window of 7 tokens is none in a text of 7.
  EXPECT_EQ(GgufReader(exported(GgufSource::kHuggingFace, golden("mistral_tiny"))).metadata.at("llama.context_length"),
            7);
}

// Of Llama 3.1's frequencies, by its formula: waves longer than the first positions are divided by the factor.
TEST(Gguf, FrequencyDivisorsAreThoseOfLlama3) {
  const GgufReader file(exported(GgufSource::kHuggingFace, golden("llama_tiny")));
  const std::vector<double>& divisors = file.tensors.at("rope_freqs.weight").values;
  ASSERT_EQ(divisors.size(), 2U);
  const double kept = (16 / (2 * std::acos(-1.0)) - 1) / 3;  // of the first pair, one radian a position
  EXPECT_NEAR(divisors[0], 1 / ((1 - kept) / 4 + kept), 1e-6);
  EXPECT_EQ(divisors[1], 4);
}

ModelConfig even_config(ModelKind kind) {
  ModelConfig config = small_config();
  config.hidden_size = 64;
  config.num_attention_heads = 2;
  config.set_kind(kind);
  return config;
}

// Random bits of finite values: of any magnitude, subnormals too. Those below 2^16 are kept.
class GgufTypes : public ::testing::TestWithParam<GgufType> {
 protected:
  GgufTypes() : model_(even_config(ModelKind::kQwen3)) {
    for (Parameter* parameter : model_.parameters) {
      std::vector<float> values(static_cast<std::size_t>(parameter->value.bytes()) / sizeof(float));
      RandomSequence random({.seed = 5, .stream = static_cast<std::uint32_t>(values.size())});
      for (float& value : values) {
        value = std::ldexp(static_cast<float>(random.next_u32()) - 0x1p31F, -31 - static_cast<int>(random.below(40)));
      }
      model_.backend->upload(parameter->value, values.data());
    }
    save_checkpoint(folder_ / "run", model_.config, model_.parameters, *model_.backend, some_state(1));
  }
  RandomModel model_;
  TemporaryFolder folder_;
};

TEST_P(GgufTypes, ValuesAreTheNearestOfTheType) {
  const GgufReader exact(exported(GgufSource::kCheckpoint, folder_ / "run"));
  const GgufReader rounded(exported(GgufSource::kCheckpoint, folder_ / "run", GetParam()));
  ASSERT_EQ(exact.tensors.size(), rounded.tensors.size());
  for (const auto& [name, tensor] : rounded.tensors) {
    const ReadTensor& original = exact.tensors.at(name);
    ASSERT_EQ(tensor.sizes, original.sizes);
    EXPECT_TRUE(tensor.sizes.size() > 1 || tensor.type == 0) << name;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const double value = original.values[i], distance = std::abs(tensor.values[i] - value);
      switch (tensor.type) {
        case 0: ASSERT_EQ(tensor.values[i], value) << name; break;
        case 1: ASSERT_LE(distance, std::max(std::abs(value) * 0x1p-11, 0x1p-25)) << name; break;
        case 30: ASSERT_LE(distance, std::abs(value) * 0x1p-8) << name; break;
        // The fitted step may leave the value farthest from 0 more than half a step beyond the last number.
        case 2: ASSERT_LE(distance, std::abs(tensor.steps[i / 32]) * 1.6) << name; break;
        default: ASSERT_LE(distance, tensor.steps[i / 32] / 2 * (1 + 1e-6)) << name;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Each, GgufTypes,
                         ::testing::Values(GgufType::kF32, GgufType::kF16, GgufType::kBf16, GgufType::kQ8,
                                           GgufType::kQ4));

// The step is no wider than it must be: one less in fp16 would not reach the largest value.
TEST(Gguf, StepsOfQ8AreTheSmallestThatReach) {
  RandomSequence random({.seed = 9});
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<float> values(kBlockValues);
    const int scale = static_cast<int>(random.below(50)) - 40;
    for (float& value : values) value = std::ldexp(static_cast<float>(random.below(1000001)) - 500000, scale - 19);
    std::vector<std::byte> block;
    encoding_sink(DType::kF32, GgufType::kQ8, [&](std::span<const std::byte> bytes) {
      block.assign(bytes.begin(), bytes.end());
    })(std::as_bytes(std::span(values)));
    ASSERT_EQ(block.size(), kQ8Bytes);
    std::uint16_t bits = 0;
    std::memcpy(&bits, block.data(), sizeof bits);
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    EXPECT_GE(f16_to_float(bits) * 127, largest);
    EXPECT_TRUE(bits == 0 || f16_to_float(static_cast<std::uint16_t>(bits - 1)) * 127 < largest) << largest;
  }
}

// Expects a message that names `why`, and that nothing is written.
void expect_refused(const ModelConfig& config, GgufType type, const std::string& why,
                    const std::function<void(RandomModel&)>& change = {}) {
  const TemporaryFolder folder;
  RandomModel model(config);
  if (change) change(model);
  save_checkpoint(folder / "run", config, model.parameters, *model.backend, some_state(1));
  const std::string message = message_of<UserError>(
      [&] { export_to_gguf(GgufSource::kCheckpoint, folder / "run", folder / "out.gguf", type, {}); });
  EXPECT_THAT(message, HasSubstr(why));
  EXPECT_FALSE(fs::exists(folder / "out.gguf"));
  EXPECT_FALSE(fs::exists(folder / "out.gguf.partial"));
}

TEST(Gguf, RefusesByNameModelsThatLlamaCppDoesNotCompute) {
  ModelConfig window = even_config(ModelKind::kGpt2);
  window.window = 3;
  expect_refused(window, GgufType::kF32, "--window-size");
  ModelConfig scaled = even_config(ModelKind::kQwen2);
  scaled.rotary.scaling = RotaryConfig::Scaling::kLlama3;
  expect_refused(scaled, GgufType::kF32, "Llama 3.1's");
  scaled.rotary.scaling = RotaryConfig::Scaling::kYarn;
  expect_refused(scaled, GgufType::kF32, "YaRN");
  ModelConfig neighbours = even_config(ModelKind::kLlama);
  neighbours.rotary.pairs = RotaryPairs::kNeighbours;
  expect_refused(neighbours, GgufType::kF32, "neighbouring elements");
  neighbours.rotary = {.attention = 2};
  expect_refused(neighbours, GgufType::kF32, "a factor");
  ModelConfig beside = even_config(ModelKind::kLlama);
  beside.norm_placement = NormPlacement::kParallel;
  expect_refused(beside, GgufType::kF32, "--layernorm-placement");
  ModelConfig wide = even_config(ModelKind::kQwen2);
  wide.head_dim = 16;
  expect_refused(wide, GgufType::kF32, "--kv-channels");
  ModelConfig odd = even_config(ModelKind::kLlama);
  odd.intermediate_size = 40;
  expect_refused(odd, GgufType::kQ8, "rows of 40 values");
  ModelConfig bert = even_config(ModelKind::kBert);
  expect_refused(bert, GgufType::kF32, "BERT");
}

TEST(Gguf, ValuesBeyondTheTypeAreRefusedByTheirTensor) {
  const auto with_value = [](float value) {
    return [value](RandomModel& model) {
      for (Parameter* parameter : model.parameters) model.backend->fill(parameter->value, 0.5);
      const TensorRef weights = model.parameters[0]->value;
      model.backend->upload(weights.slice(1, 0, 1).slice(0, 2, 3), &value);
    };
  };
  const ModelConfig config = even_config(ModelKind::kLlama);
  expect_refused(config, GgufType::kF16, "embedding.tokens.weight has the value 70000", with_value(70000));
  expect_refused(config, GgufType::kQ8, "q8_0 holds", with_value(9e6F));
}

TEST(Gguf, AnExportWithAnErrorLeavesNoFile) {
  const TemporaryFolder folder;
  make_variant(
      golden("llama_tiny"), folder / "hf", [](Json&) {},
      [](FileTensors& tensors) {
        const float wrong = std::numeric_limits<float>::infinity();
        std::memcpy(tensors.at("model.norm.weight").bytes.data(), &wrong, sizeof wrong);
      });
  const std::string message = message_of<UserError>(
      [&] { export_to_gguf(GgufSource::kHuggingFace, folder / "hf", folder / "out.gguf", GgufType::kF32, {}); });
  EXPECT_THAT(message, HasSubstr("final_norm.weight has a value that is not finite"));
  EXPECT_FALSE(fs::exists(folder / "out.gguf"));
}

}  // namespace
}  // namespace teratron::testing
