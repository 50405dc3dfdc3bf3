// Pieces in which a prompt is computed: its keys, values and logits have the same bits in all of whole units. Products
// with weights in 8 and 4 bits have the same bits for any rows (tests/ops).
#include <gtest/gtest.h>

#include "base/trials.h"
#include "model/family.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kPromptTokens = 256;

ModelConfig wide(ModelKind kind) {
  ModelConfig config = small_config();
  config.set_kind(kind);
  config.hidden_size = 512;  // products of fewer inputs are computed in one way for all numbers of rows
  config.num_attention_heads = 8;
  if (kind == ModelKind::kLlama) config.num_key_value_heads = 2;
  config.max_position_embeddings = 300;
  config.vocab_size = 128;
  config.num_layers = 1;  // whose keys and values the last token has to find
  return config;
}

// Logits after the prompt, and after one more token, of a prompt in pieces.
std::vector<float> logits_by(std::int64_t piece, const ModelConfig& config, Backend& backend) {
  LanguageModel model(backend, config, {.purpose = Purpose::kGeneration, .tokens = piece});
  model.allocate();
  model.initialize(7);
  std::vector<std::int32_t> ids(kPromptTokens + 1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * i % 128);
  std::vector<float> logits(2 * 128);
  for (std::int64_t at = 0; at < kPromptTokens; at += piece) {
    const auto begin = static_cast<std::size_t>(at), size = static_cast<std::size_t>(piece);
    model.logits(std::span(ids).subspan(begin, size), at, 1, std::span(logits).first(128));
  }
  constexpr std::int32_t kNext = kPromptTokens;
  model.next_logits(std::span(ids).last(1), {&kNext, 1}, std::span(logits).last(128));
  return logits;
}

TEST(PromptPieces, HaveTheSameBitsByWholeUnits) {
  for (const ModelKind kind : {ModelKind::kGpt2, ModelKind::kLlama}) {
    const ModelConfig config = wide(kind);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      // A kind of model for each type; the kernels see no difference between the kinds.
      if (is_fast_set() && (kind == ModelKind::kGpt2) != (dtype == DType::kF32)) continue;
      const auto backend = make_cpu_backend({.compute_dtype = dtype});
      const std::vector<float> units = logits_by(64, config, *backend);
      for (const std::int64_t piece : {128, 256}) {
        EXPECT_EQ(logits_by(piece, config, *backend), units) << config.family().name << " " << piece;
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing
