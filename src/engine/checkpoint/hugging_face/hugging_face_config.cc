#include "checkpoint/hugging_face/hugging_face_config.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "float64";
    case DType::kBF16: return "bfloat16";
    case DType::kF16: return "float16";
    default: return "float32";
  }
}

}  // namespace

bool flag_or(const JsonFields& fields, std::string_view key, bool absent) {
  return fields.has(key) ? fields.boolean(key) : absent;
}

double number_or(const JsonFields& fields, std::string_view key, double absent) {
  return fields.has(key) ? fields.number(key) : absent;
}

bool is_architecture(const JsonFields& fields, std::string_view name) {
  return fields.has("architectures") && fields["architectures"] == Json::array({name});
}

Activation read_gelu(const JsonFields& fields, std::string_view key, std::string_view absent,
                     std::vector<std::string>& unsupported) {
  const std::string name = fields.has(key) ? fields.string(key) : std::string(absent);
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGeluErf;
  unsupported.push_back(fmt::format("{} '{}' (there are gelu_new, gelu_pytorch_tanh and gelu)", key, name));
  return Activation::kGeluTanh;
}

HuggingFaceConfig read_hugging_face_config(const std::filesystem::path& path) {
  const Json json = parse_json_object(read_file(path), path);
  const JsonFields fields(json, path);
  const std::string type = fields.string("model_type");
  const std::optional<ModelKind> kind = find_model_kind(type);
  if (!kind) {
    throw_user_error("'{}' describes a model of type '{}'; those that can be converted: {}", path.string(), type,
                     fmt::join(model_kind_names(), ", "));
  }
  std::vector<std::string> unsupported, unusable_head;
  const ModelConfig model = *kind == ModelKind::kGpt2 ? read_gpt2_config(fields, unsupported)
                                                      : read_bert_config(fields, unsupported, unusable_head);
  for (const Fault& fault : model.faults()) unsupported.push_back(fault.text);
  if (!unsupported.empty()) {
    throw_user_error("'{}' describes a {} that Teratron does not have: {}", path.string(),
                     *kind == ModelKind::kGpt2 ? "GPT-2" : "BERT", fmt::join(unsupported, "; "));
  }
  return {.model = model,
          .tied = flag_or(fields, "tie_word_embeddings", true),
          .unusable_head = fmt::format("{}", fmt::join(unusable_head, "; "))};
}

std::string hugging_face_config(const ModelConfig& model, DType dtype, const FileContents& tokenizer) {
  nlohmann::ordered_json json =
      model.kind == ModelKind::kGpt2 ? gpt2_config(model, tokenizer) : bert_config(model, tokenizer);
  json["torch_dtype"] = torch_name(dtype);
  return json.dump(2) + "\n";
}

}  // namespace teratron
