#include "checkpoint/hugging_face/gpt2_mapping.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace teratron {
namespace {

struct Renamed {
  std::string_view ours, theirs;
  bool is_linear = false;
};

constexpr std::array kOfModel = {
    Renamed{"embedding.tokens", "transformer.wte"},
    Renamed{"embedding.positions", "transformer.wpe"},
    Renamed{"final_norm", "transformer.ln_f"},
};
// Behind "layers.N." and "transformer.h.N.".
constexpr std::array kOfLayer = {
    Renamed{"norm1", "ln_1"},
    Renamed{"attention.qkv", "attn.c_attn", true},
    Renamed{"attention.projection", "attn.c_proj", true},
    Renamed{"norm2", "ln_2"},
    Renamed{"mlp.up", "mlp.c_fc", true},
    Renamed{"mlp.down", "mlp.c_proj", true},
};
constexpr std::string_view kLayers = "layers.";

// "layers.3.mlp.up.weight": the module "mlp.up" of layer "3", and its tensor ".weight".
struct NameParts {
  std::string_view layer, module, tensor;  // no layer: of the model as a whole
};

NameParts parts_of(std::string_view parameter) {
  NameParts parts;
  const std::size_t dot = parameter.rfind('.');
  parts.tensor = parameter.substr(dot);
  parts.module = parameter.substr(0, dot);
  if (!parts.module.starts_with(kLayers)) return parts;
  parts.module.remove_prefix(kLayers.size());
  const std::size_t end = parts.module.find('.');
  parts.layer = parts.module.substr(0, end);
  parts.module.remove_prefix(end + 1);
  return parts;
}

template <std::size_t size>
const Renamed* find(const std::array<Renamed, size>& names, std::string_view module) {
  for (const Renamed& name : names) {
    if (name.ours == module) return &name;
  }
  return nullptr;
}

const Renamed& renamed(const NameParts& parts, std::string_view parameter) {
  const Renamed* found = parts.layer.empty() ? find(kOfModel, parts.module) : find(kOfLayer, parts.module);
  if (found == nullptr) throw InternalError(fmt::format("a GPT-2 has no parameter '{}'", parameter));
  return *found;
}

}  // namespace

std::string gpt2_tensor_name(std::string_view parameter) {
  const NameParts parts = parts_of(parameter);
  const std::string_view module = renamed(parts, parameter).theirs;
  if (parts.layer.empty()) return fmt::format("{}{}", module, parts.tensor);
  return fmt::format("transformer.h.{}.{}{}", parts.layer, module, parts.tensor);
}

bool is_gpt2_tensor_transposed(std::string_view parameter) {
  const NameParts parts = parts_of(parameter);
  return renamed(parts, parameter).is_linear && parts.tensor == ".weight";
}

}  // namespace teratron
