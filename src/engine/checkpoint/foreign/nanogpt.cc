// nanoGPT's ckpt.pt: a dictionary with the state of its module ("model") and the arguments that made it ("model_args").
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/json_fields.h"
#include "checkpoint/foreign/foreign_model.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutput = "lm_head.weight", kEmbedding = "transformer.wte.weight";

// Refuses arguments that nanoGPT's model does not have: programs that grew out of it add some that change what the
// model computes.
void require_known(const nlohmann::json& arguments, const fs::path& path) {
  constexpr auto kKnown =
      std::to_array<std::string_view>({"n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias", "dropout"});
  for (const auto& [key, value] : arguments.items()) {
    if (std::ranges::find(kKnown, key) != kKnown.end()) continue;
    throw_user_error("'{}': its model_args has '{}', which nanoGPT's has not, so its model is another", path.string(),
                     key);
  }
}

// Its MLPs have the exact GELU, its embedding's dropout is that of the rest, and it saves no epsilon: PyTorch's holds.
ModelConfig model_of_nanogpt(const JsonFields& fields) {
  const double dropout = number_or(fields, "dropout", 0);
  return {.num_layers = fields.integer("n_layer", 1, kLargestSize),
          .hidden_size = fields.integer("n_embd", 1, kLargestSize),
          .num_attention_heads = fields.integer("n_head", 1, kLargestSize),
          .vocab_size = fields.integer("vocab_size", 1, kLargestSize),
          .max_position_embeddings = fields.integer("block_size", 1, kLargestSize),
          .hidden_dropout = dropout,
          .attention_dropout = dropout,
          .activation = Activation::kGeluErf};
}

std::string checksum_of_values(const ForeignTensor& tensor) {
  Checksum checksum;
  tensor.pass_on([&](std::span<const std::byte> bytes) { checksum.update(bytes); });
  return checksum.digest();
}

// The output projection is the embedding, and stored beside it.
void take_output_out(ForeignWeights& weights, const fs::path& path) {
  const auto output = weights.tensors.find(std::string(kOutput)),
             embedding = weights.tensors.find(std::string(kEmbedding));
  if (output == weights.tensors.end()) return;
  const bool is_same = embedding != weights.tensors.end() && output->second.dtype == embedding->second.dtype &&
                       output->second.dtype && output->second.shape == embedding->second.shape &&
                       checksum_of_values(output->second) == checksum_of_values(embedding->second);
  if (!is_same) {
    throw_user_error("'{}': {} differs from {}; nanoGPT ties them, and so does Teratron's GPT-2", path.string(),
                     kOutput, kEmbedding);
  }
  weights.tensors.erase(output);
}

// Refuses biases where the arguments say that there are none: nanoGPT would not load them.
void require_no_biases(const ForeignWeights& weights, const fs::path& path) {
  for (const auto& [name, tensor] : weights.tensors) {
    if (!name.ends_with(".bias")) continue;
    throw_user_error("'{}' has {}, and its model_args say \"bias\": false; set it to true if it has biases",
                     path.string(), name);
  }
}

}  // namespace

const HuggingFaceMapping& nanogpt_mapping() {
  static const HuggingFaceMapping mapping = [] {
    HuggingFaceMapping like_gpt2 = gpt2_mapping();
    for (HuggingFaceMapping::Module& module : like_gpt2.of_layer) module.transposed = false;
    return like_gpt2;
  }();
  return mapping;
}

ForeignWeights read_nanogpt(const fs::path& path) {
  std::error_code none;
  const fs::path name = fs::is_directory(path, none) ? path / "ckpt.pt" : path;
  const auto file = std::make_shared<const TorchFile>(name);
  const PickleValue *const state = file->content().find("model"), *const arguments = file->content().find("model_args");
  if (state == nullptr || !state->is(PickleKind::kDictionary) || arguments == nullptr) {
    throw_user_error("'{}' is no checkpoint of nanoGPT, which has 'model' and 'model_args'", name.string());
  }
  const nlohmann::json json = json_of(*arguments);
  require_known(json, name);
  const JsonFields fields(json, name);
  ForeignWeights weights{.model = model_of_nanogpt(fields),
                         .tensors = {},
                         .mapping = &nanogpt_mapping(),
                         .lacks_biases = !flag_or(fields, "bias", true)};
  for (std::size_t i = 0; i + 1 < state->items.size(); i += 2) {
    constexpr std::string_view kCompiled = "_orig_mod.";  // of torch.compile
    std::string_view key = state->items[i]->text;
    if (key.starts_with(kCompiled)) key.remove_prefix(kCompiled.size());
    const std::optional<std::string> full = nanogpt_mapping().full_name(key);
    if (full) weights.tensors.insert_or_assign(*full, tensor_of(file, *state->items[i + 1], *full));
  }
  take_output_out(weights, name);
  if (weights.lacks_biases) require_no_biases(weights, name);
  return weights;
}

}  // namespace teratron
