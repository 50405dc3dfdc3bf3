#include "plan/usual_settings.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kGpt2Vocabulary = 50257, kBertVocabulary = 30522;

}  // namespace

void choose_device_settings(TrainConfig& config, const Device& device, bool precision_is_given) {
  if (device.peak_16 <= device.peak_32) return;
  config.backend.kind = BackendKind::kCuda;
  if (!precision_is_given) (is_refused_by_cuda_backend(device) ? config.backend.fp16 : config.backend.bf16) = true;
}

bool is_refused_by_cuda_backend(const Device& device) { return device.name.find("V100") != std::string::npos; }

std::int64_t vocabulary_size(const TrainConfig& config) {
  if (config.model.config.vocab_size > 0 || !config.model.tokenizer.empty()) return config.model.vocabulary_size();
  return config.model.config.kind == ModelKind::kGpt2 ? kGpt2Vocabulary : kBertVocabulary;
}

}  // namespace teratron::plan
