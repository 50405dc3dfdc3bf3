// Models of nanoGPT, llm.c and Megatron-LM compute what Hugging Face's GPT-2 does with the same weights (golden files
// of tests/golden/make_foreign_golden.py): the exact GELU in nanoGPT's, the approximation by tanh in the others.
#include <gtest/gtest.h>

#include <cstring>

#include "base/temporary_folder.h"
#include "checkpoint/foreign/foreign_model.h"
#include "checkpoint/native/checkpoint.h"
#include "model/hugging_face_example.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kForeign = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/foreign";

void expect_foreign_logits(ForeignFormat format, const std::string& file, const std::string& folder,
                           const std::string& gelu) {
  const TemporaryFolder out;
  const fs::path checkpoint = import_foreign(ForeignModel(format, kForeign / file), out.path(), out / "run");
  const SafetensorsFile golden(kForeign / folder / "logits.safetensors");
  const auto inputs = golden.bytes(*golden.find("inputs"));
  std::vector<std::int32_t> ids(inputs.size() / sizeof(std::int32_t));
  std::memcpy(ids.data(), inputs.data(), inputs.size());
  const std::vector<float> expected = floats_of(golden, gelu);
  constexpr std::int64_t kSequences = 2, kTokens = 7;
  ASSERT_EQ(std::ssize(ids), kSequences * kTokens);

  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const ModelConfig config = read_checkpoint_info(checkpoint).model;
  LanguageModel runner(*backend, config, {.purpose = Purpose::kEvaluation, .tokens = kTokens});
  runner.allocate();
  load_checkpoint(checkpoint, config, runner.parameters(), *backend, {.optimizer = false});
  std::vector<float> actual(expected.size() / kSequences);
  for (std::size_t sequence = 0; sequence < kSequences; ++sequence) {
    runner.logits(std::span(ids).subspan(sequence * kTokens, kTokens), 0, kTokens, actual);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      // Rounding of fp32 in sums of up to 64 products; the two GELUs are 7e-4 apart.
      ASSERT_NEAR(actual[i], expected[sequence * actual.size() + i], 2e-5) << file << ", value " << i;
    }
  }
}

TEST(ForeignLogits, AreHuggingFaces) {
  for (const char* file : {"nanogpt.pt", "nanogpt_strides.pt"}) {
    expect_foreign_logits(ForeignFormat::kNanoGpt, file, "hf", "exact");
  }
  expect_foreign_logits(ForeignFormat::kNanoGpt, "nanogpt_compiled.pt", "hf_no_biases", "exact");
  for (const char* file : {"llmc.bin", "llmc_bf16.bin"})
    expect_foreign_logits(ForeignFormat::kLlmC, file, "hf", "tanh");
  for (const char* file : {"megatron_0.pt", "megatron_1.pt", "megatron_3.pt", "megatron_core.pt"}) {
    expect_foreign_logits(ForeignFormat::kMegatron, file, "hf", "tanh");
  }
}

}  // namespace
}  // namespace teratron::testing
