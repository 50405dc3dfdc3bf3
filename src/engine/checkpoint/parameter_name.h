// The parts of a parameter's name.
#pragma once

#include <string_view>

namespace teratron {

// "layers.3.mlp.up.weight": tensor ".weight" of module "mlp.up" in layer "3".
struct NameParts {
  std::string_view layer, module, tensor;  // empty layer: of the model as a whole
};

// Refers to `parameter`.
inline NameParts name_parts(std::string_view parameter) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t dot = parameter.rfind('.');
  NameParts parts{.layer = {}, .module = parameter.substr(0, dot), .tensor = parameter.substr(dot)};
  if (!parts.module.starts_with(kLayers)) return parts;
  parts.module.remove_prefix(kLayers.size());
  const std::size_t end = parts.module.find('.');
  parts.layer = parts.module.substr(0, end);
  parts.module.remove_prefix(end + 1);
  return parts;
}

}  // namespace teratron
