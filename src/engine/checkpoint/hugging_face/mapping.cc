#include "checkpoint/hugging_face/mapping.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/parameter_name.h"
#include "checkpoint/stored_tensor.h"
#include "model/family.h"

namespace teratron {
namespace {

using Module = HuggingFaceMapping::Module;

const Module& module_of(const HuggingFaceMapping& mapping, const NameParts& parts, std::string_view parameter) {
  const std::vector<Module>& modules = parts.layer.empty() ? mapping.of_model : mapping.of_layer;
  const auto found = std::ranges::find(modules, parts.module, &Module::ours);
  if (found == modules.end()) throw InternalError(fmt::format("there is no name for the parameter '{}'", parameter));
  return *found;
}

}  // namespace

std::optional<std::string> HuggingFaceMapping::full_name(std::string_view stored) const {
  if (stored.starts_with(prefix)) stored.remove_prefix(prefix.size());
  const std::optional<std::string> name = current_name(stored);
  if (!name) return std::nullopt;
  const bool is_head = std::ranges::any_of(heads, [&](std::string_view head) { return name->starts_with(head); });
  return is_head ? *name : fmt::format("{}{}", prefix, *name);
}

const HuggingFaceFormat& hugging_face_format(ModelKind kind) {
  static constexpr HuggingFaceFormat kFormats[] = {
      {ModelKind::kGpt2, gpt2_mapping, read_gpt2_config, gpt2_config},
      {ModelKind::kBert, bert_mapping, read_bert_config, bert_config},
      {ModelKind::kRoberta, roberta_mapping, read_roberta_config, bert_config},
      {ModelKind::kDistilBert, distilbert_mapping, read_distilbert_config, distilbert_config},
      {ModelKind::kGptNeox, gpt_neox_mapping, read_gpt_neox_config, gpt_neox_config},
      {ModelKind::kLlama, llama_mapping, read_llama_config<ModelKind::kLlama>, llama_config},
      {ModelKind::kMistral, llama_mapping, read_llama_config<ModelKind::kMistral>, llama_config},
      {ModelKind::kQwen2, llama_mapping, read_llama_config<ModelKind::kQwen2>, llama_config},
      {ModelKind::kQwen3, llama_mapping, read_llama_config<ModelKind::kQwen3>, llama_config},
  };
  const auto found = std::ranges::find(kFormats, kind, &HuggingFaceFormat::kind);
  if (found != std::end(kFormats)) return *found;
  throw_user_error("Hugging Face's files of a {} are neither read nor written yet", family_of(kind).title);
}

HuggingFaceTensors tensors_in(const HuggingFaceMapping& mapping, const ModelConfig& model, const Parameter& parameter) {
  const NameParts parts = name_parts(parameter.name);
  const Module& module = module_of(mapping, parts, parameter.name);
  const std::string layer = parts.layer.empty() ? "" : fmt::format("{}{}.", mapping.layers, parts.layer);
  std::vector<std::int64_t> shape = stored_shape(parameter);
  const auto count = static_cast<std::int64_t>(module.theirs.size());
  check_equal(shape[0] % count, 0, "rows that the tensors share equally");
  shape[0] /= count;
  std::array<std::int64_t, 2> transposed = {1, 1};
  if (module.transposed && shape.size() > 1) {
    std::ranges::reverse(shape);
    transposed = {shape[0], shape[1]};
  }
  if (module.by_head) transposed = {model.num_attention_heads, parameter.split.blocks};
  HuggingFaceTensors tensors{.parts = {}, .may_lack = module.may_lack};
  shape[0] += module.skipped_rows;
  for (const std::string_view theirs : module.theirs) {
    tensors.parts.push_back(
        {fmt::format("{}{}{}", layer, theirs, parts.tensor), transposed, shape, module.skipped_rows});
  }
  return tensors;
}

}  // namespace teratron
