#include "plan/usual_settings.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kGpt2Vocabulary = 50257, kBertVocabulary = 30522;

}  // namespace

void choose_precision(TrainConfig& config, const Device& device) {
  if (device.peak_16 <= device.peak_32) return;
  config.backend = BackendKind::kCuda;
  (device.name.find("V100") == std::string::npos ? config.bf16 : config.fp16) = true;
}

std::int64_t vocabulary_size(const TrainConfig& config) {
  if (config.model.vocab_size > 0 || !config.tokenizer.empty()) return config.vocabulary_size();
  return config.model.kind == ModelKind::kGpt2 ? kGpt2Vocabulary : kBertVocabulary;
}

}  // namespace teratron::plan
