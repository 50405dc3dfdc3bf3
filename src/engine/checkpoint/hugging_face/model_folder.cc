#include "checkpoint/hugging_face/model_folder.h"

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/stored_tensor.h"
#include "model/family.h"
#include "model/make_model.h"
#include "ops/backend.h"
#include "tensor/memory.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

const HuggingFaceMapping& mapping_of(const HuggingFaceConfig& config) {
  return hugging_face_mapping(config.model.kind);
}

// Tensors of the mapping that this model has once where files may have them twice.
std::span<const HuggingFaceMapping::Copy> copies_of(const HuggingFaceConfig& config) {
  if (config.model.untied_output) return {};
  return mapping_of(config).copies;
}

bool has_pretraining_head(const HuggingFaceWeights& weights, const HuggingFaceMapping& mapping) {
  return std::ranges::any_of(weights.tensors(),
                             [&](const auto& tensor) { return tensor.first.starts_with(mapping.heads.front()); });
}

bool is_same(const TensorLocation& one, const TensorLocation& other) {
  return one.entry->dtype_name == other.entry->dtype_name && one.entry->shape == other.entry->shape &&
         std::ranges::equal(one.bytes(), other.bytes());
}

// The output projection may be stored beside the embedding that it is tied to, and so may its bias; then both must be
// the same.
void check_copies(const HuggingFaceWeights& weights, const HuggingFaceConfig& config, const fs::path& folder) {
  const auto& tensors = weights.tensors();
  const std::span<const HuggingFaceMapping::Copy> copies = copies_of(config);
  if (copies.empty()) return;
  const std::string projection(copies.front().name);
  if (!config.tied && config.model.head == ModelHead::kPretraining && !tensors.contains(projection)) {
    throw_user_error("'{}' unties the output projection (tie_word_embeddings false) and does not hold it ({})",
                     folder.string(), projection);
  }
  for (const auto& [name, of] : copies) {
    const auto copy = tensors.find(std::string(name));
    if (copy == tensors.end() || is_same(copy->second, tensors.at(std::string(of)))) continue;
    throw_user_error("'{}': {} differs from {}; Teratron's model has one tensor for both, so this one cannot be used",
                     copy->second.file->path().string(), name, of);
  }
}

std::span<const std::byte> without_skipped_rows(std::span<const std::byte> bytes, const HuggingFaceTensor& tensor) {
  return bytes.subspan(bytes.size() / static_cast<std::size_t>(tensor.shape[0]) *
                       static_cast<std::size_t>(tensor.skipped_rows));
}

// Whether a BERT's weights end in the head of a task, whichever class wrote them.
bool is_of_task_head(std::string_view name) {
  return name.starts_with("classifier.") || name.starts_with("qa_outputs.") || name.starts_with("pre_classifier.");
}

bool has_task_head(const HuggingFaceWeights& weights) {
  return std::ranges::any_of(weights.tensors(), [](const auto& tensor) { return is_of_task_head(tensor.first); });
}

void check_tensors(const HuggingFaceWeights& weights, const HuggingFaceMapping& mapping,
                   const HuggingFaceConfig& config, std::span<const HuggingFaceTensors> wanted,
                   const fs::path& folder) {
  const std::span<const HuggingFaceMapping::Copy> copies = copies_of(config);
  std::vector<SafetensorsEntry> there;
  for (const auto& [name, location] : weights.tensors()) {
    if (std::ranges::find(copies, name, &HuggingFaceMapping::Copy::name) != copies.end()) continue;
    if (!config.model.has_pooler() && !mapping.pooler.empty() && name.starts_with(mapping.pooler)) continue;
    if (!config.unusable_head.empty() && is_of_task_head(name)) continue;
    there.push_back(*location.entry);
    there.back().name = name;
  }
  std::vector<ExpectedTensor> expected;
  for (const HuggingFaceTensors& tensors : wanted) {
    for (const HuggingFaceTensor& tensor : tensors.parts) {
      if (!tensors.may_lack || weights.tensors().contains(tensor.name)) expected.push_back({tensor.name, tensor.shape});
    }
  }
  const std::vector<std::string> faults = compare_tensors(there, expected);
  if (!faults.empty()) {
    throw_user_error("the weights in '{}' are not those of the model in its config.json: {}", folder.string(),
                     summary_of(faults));
  }
}

}  // namespace

HuggingFaceFolder::HuggingFaceFolder(const fs::path& folder)
    : HuggingFaceFolder(folder, read_hugging_face_config(folder / "config.json")) {}

HuggingFaceFolder::HuggingFaceFolder(const fs::path& folder, HuggingFaceConfig config)
    : folder_(folder),
      model_(config.model),
      unusable_head_(config.unusable_head),
      weights_(folder, mapping_of(config), copies_of(config)) {
  const HuggingFaceMapping& mapping = mapping_of(config);
  if (static_cast<std::size_t>(model_.num_layers) > weights_.tensors().size()) {
    throw_user_error("'{}' has {} in its config.json and {} in all", folder.string(),
                     counted(model_.num_layers, "layer"), counted(std::ssize(weights_.tensors()), "tensor"));
  }
  if (model_.head == ModelHead::kPretraining && !model_.family().continues_text &&
      !has_pretraining_head(weights_, mapping)) {
    model_.head = ModelHead::kNone;
  }
  if (!model_.family().continues_text && !is_task_head(model_.head) && unusable_head_.empty() &&
      has_task_head(weights_)) {
    unusable_head_ =
        "it is a task's, and \"architectures\" in config.json names none of BertForSequenceClassification, "
        "BertForMultipleChoice, BertForQuestionAnswering and BertForTokenClassification, or of these of its own kind; "
        "write there which it is";
  }
  config.model = model_;
  config.unusable_head = unusable_head_;
  parameters_ = declared_parameters(model_);
  for (const Parameter& parameter : parameters_) {
    tensors_.push_back(hugging_face_tensors(model_, parameter));
    if (is_drawn(tensors_.size() - 1)) drawn_.push_back(tensors_.back().parts.front().name);
  }
  check_tensors(weights_, mapping, config, tensors_, folder);
  check_copies(weights_, config, folder);
}

bool HuggingFaceFolder::is_drawn(std::size_t parameter) const {
  return tensors_[parameter].may_lack && !weights_.tensors().contains(tensors_[parameter].parts.front().name);
}

void HuggingFaceFolder::require_finite() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (is_drawn(i)) continue;
    for (const HuggingFaceTensor& tensor : tensors_[i].parts) {
      const TensorLocation& from = location(tensor);
      teratron::require_finite(from.bytes(), *from.entry->dtype, from.entry->name, folder_);
      from.release();
    }
  }
}

DType HuggingFaceFolder::dtype(std::size_t parameter) const {
  if (is_drawn(parameter)) return DType::kF32;
  const std::vector<HuggingFaceTensor>& parts = tensors_[parameter].parts;
  const DType first = *location(parts.front()).entry->dtype;
  DType common = first;
  for (const HuggingFaceTensor& part : parts) {
    const DType dtype = *location(part).entry->dtype;
    if (dtype == DType::kF64) return dtype;
    if (dtype != first) common = DType::kF32;
  }
  return common;
}

void HuggingFaceFolder::pass_on(std::size_t parameter, const ByteSink& sink) const {
  if (is_drawn(parameter)) return draw(parameter, sink);
  const DType common = dtype(parameter);
  for (const HuggingFaceTensor& tensor : tensors_[parameter].parts) {
    const TensorLocation& from = location(tensor);
    const DType stored = *from.entry->dtype;
    const ByteSink converted = converting_sink(stored, common, sink);
    const auto [rows, columns] = tensor.transposed;
    stream_transposed(without_skipped_rows(from.bytes(), tensor), rows, columns, converted);
    from.release();
  }
}

// Draws the tensor as a run with --seed 0 does.
void HuggingFaceFolder::draw(std::size_t index, const ByteSink& sink) const {
  const Parameter& parameter = parameters_[index];
  const std::vector<std::int64_t> stored = stored_shape(parameter);
  const Shape shape = stored.size() == 1 ? Shape{stored[0]} : Shape{stored[0], stored[1]};
  const std::unique_ptr<Backend> backend = make_reference_backend(DType::kF32);
  const Tensor drawn(*backend, DType::kF32, shape);
  backend->fill(drawn, parameter.init == Init::kOne ? 1.0 : 0.0);
  if (parameter.init == Init::kNormal) {
    const RandomStream random{.purpose = RandomPurpose::kInit, .stream = static_cast<std::uint32_t>(index)};
    backend->fill_normal(drawn, random, 0, model_.init_method_std * parameter.init_scale);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(drawn.ref().bytes()));
  backend->download(bytes.data(), drawn);
  stream(bytes, sink);
}

}  // namespace teratron
