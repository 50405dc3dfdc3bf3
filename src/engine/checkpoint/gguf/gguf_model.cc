#include "checkpoint/gguf/gguf_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "checkpoint/gguf/architecture.h"
#include "checkpoint/gguf/encoding.h"
#include "checkpoint/parameter_name.h"
#include "checkpoint/stored_tensor.h"
#include "model/family.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

struct NamePair {
  std::string_view ours, theirs;
};
constexpr NamePair kOfModel[] = {{"embedding.tokens", "token_embd"},
                                 {"embedding.positions", "position_embd"},
                                 {"final_norm", "output_norm"},
                                 {"output", "output"}};
// Queries, keys and values: see add_apart() and add_fused().
constexpr NamePair kOfLayer[] = {{"norm1", "attn_norm"},
                                 {"attention.query_norm", "attn_q_norm"},
                                 {"attention.key_norm", "attn_k_norm"},
                                 {"attention.projection", "attn_output"},
                                 {"norm2", "ffn_norm"},
                                 {"mlp.gate", "ffn_gate"},
                                 {"mlp.up", "ffn_up"},
                                 {"mlp.down", "ffn_down"}};

std::string_view their_name(std::span<const NamePair> names, std::string_view module, std::string_view parameter) {
  const auto found = std::ranges::find(names, module, &NamePair::ours);
  if (found == names.end()) throw InternalError(fmt::format("GGUF has no name for the parameter '{}'", parameter));
  return found->theirs;
}

// Makes the lists of tensors and pieces, parameter by parameter.
class TensorList {
 public:
  TensorList(const ModelConfig& config, const GgufArchitecture& architecture, std::span<const Parameter> parameters,
             GgufType type, GgufModel& model)
      : config_(config), architecture_(architecture), parameters_(parameters), type_(type), model_(model) {}

  void add_all() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) add_parameter(i);
    if (!config_.untied_output && architecture_.needs_output) add_whole("output.weight", 0);
  }

 private:
  void add_parameter(std::size_t index) {
    const std::string_view name = parameters_[index].name;
    const auto [layer, module, suffix] = name_parts(name);
    if (layer.empty()) {
      return add_whole(fmt::format("{}{}", their_name(kOfModel, module, name), suffix), index);
    }
    const std::string prefix = fmt::format("blk.{}.", layer);
    if (module == "attention.qkv" || module == "attention.query" || module == "attention.key_value") {
      return architecture_.fused_qkv ? add_fused(prefix, module, suffix, index)
                                     : add_apart(prefix, module, suffix, index);
    }
    add_whole(fmt::format("{}{}{}", prefix, their_name(kOfLayer, module, name), suffix), index);
  }

  // Queries, keys and values below each other, as ours are unless the heads of keys are fewer.
  void add_fused(const std::string& prefix, std::string_view module, std::string_view suffix, std::size_t index) {
    if (module == "attention.key_value") return;  // its rows came with the queries'
    const std::size_t tensor = begin_tensor(fmt::format("{}attn_qkv{}", prefix, suffix), index);
    add_piece({tensor, index, 0, rows_of(index), 0});
    if (module == "attention.qkv") return;
    const std::string_view name = parameters_[index].name;
    const std::string other = fmt::format("{}attention.key_value{}", name.substr(0, name.find("attention.")), suffix);
    const auto found = std::ranges::find(parameters_, other, &Parameter::name);
    check(found != parameters_.end(), "keys and values of the queries");
    const auto key_value = static_cast<std::size_t>(found - parameters_.begin());
    add_piece({tensor, key_value, 0, rows_of(key_value), 0});
  }

  void add_apart(const std::string& prefix, std::string_view module, std::string_view suffix, std::size_t index) {
    const std::int64_t head = config_.head_size(), keys = config_.key_value_heads() * head;
    const std::int64_t paired = architecture_.pairs_neighbours ? head : 0;
    std::int64_t row = 0;
    const auto add = [&](std::string_view theirs, std::int64_t rows, std::int64_t paired_rows) {
      const std::size_t tensor = begin_tensor(fmt::format("{}{}{}", prefix, theirs, suffix), index);
      add_piece({tensor, index, row, rows, paired_rows});
      row += rows;
    };
    if (module != "attention.key_value") add("attn_q", config_.num_attention_heads * head, paired);
    if (module == "attention.query") return;
    add("attn_k", keys, paired);
    add("attn_v", keys, 0);
  }

  void add_whole(std::string name, std::size_t index) {
    const std::size_t tensor = begin_tensor(std::move(name), index);
    add_piece({tensor, index, 0, rows_of(index), 0});
  }

  std::int64_t rows_of(std::size_t index) const { return stored_shape(parameters_[index])[0]; }

  // A tensor without rows yet. Vectors and positions stay in fp32: llama.cpp adds and multiplies them so.
  std::size_t begin_tensor(std::string name, std::size_t index) {
    std::vector<std::int64_t> shape = stored_shape(parameters_[index]);
    const bool stays = shape.size() == 1 || name.starts_with("position_embd");
    shape[0] = 0;
    model_.tensors.push_back({std::move(name), std::move(shape), stays ? GgufType::kF32 : type_});
    return model_.tensors.size() - 1;
  }
  void add_piece(const GgufPiece& piece) {
    model_.tensors[piece.tensor].shape[0] += piece.rows;
    model_.pieces.push_back(piece);
  }

  const ModelConfig& config_;
  const GgufArchitecture& architecture_;
  std::span<const Parameter> parameters_;
  GgufType type_;
  GgufModel& model_;
};

// Numbers that llama.cpp gives to files by the type of most tensors.
std::uint32_t file_type(GgufType type) {
  switch (type) {
    case GgufType::kF32: return 0;
    case GgufType::kF16: return 1;
    case GgufType::kQ8: return 7;
    case GgufType::kQ4: return 2;
    case GgufType::kBf16: break;
  }
  return 32;
}

std::vector<std::string> rows_beside_blocks(const GgufModel& model) {
  std::vector<std::string> faults;
  for (const GgufTensor& tensor : model.tensors) {
    const std::int64_t columns = tensor.shape.back();
    if (!is_blocks(tensor.type) || columns % kTileColumns == 0) continue;
    faults.push_back(fmt::format("{} has rows of {} values, and {} blocks of {}: f16 holds it", tensor.name, columns,
                                 name_of(tensor.type), kTileColumns));
    break;
  }
  return faults;
}

}  // namespace

GgufModel gguf_model(const ModelConfig& config, std::span<const Parameter> parameters, GgufType type) {
  const GgufArchitecture& architecture = gguf_architecture(config.kind);
  std::vector<std::string> faults = faults_as(architecture, config);
  GgufModel model;
  if (faults.empty()) {
    TensorList(config, architecture, parameters, type, model).add_all();
    faults = rows_beside_blocks(model);
  }
  if (!faults.empty()) {
    throw_user_error("this {} cannot be a GGUF file for llama.cpp: {}", config.family().title, fmt::join(faults, "; "));
  }
  model.metadata = {{"general.architecture", std::string(architecture.name)},
                    {"general.type", std::string("model")},
                    {"general.file_type", file_type(type)},
                    {"general.quantization_version", std::uint32_t{2}}};
  std::ranges::move(metadata_as(architecture, config), std::back_inserter(model.metadata));
  model.frequency_divisors = frequency_divisors(config);
  if (!model.frequency_divisors.empty()) {
    model.tensors.push_back({"rope_freqs.weight", {std::ssize(model.frequency_divisors)}, GgufType::kF32});
  }
  model.notes = notes_on(config);
  return model;
}

}  // namespace teratron
