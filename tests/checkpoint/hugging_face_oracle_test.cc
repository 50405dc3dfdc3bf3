// transformers and safetensors, the Python packages, read what we export.
#include <gtest/gtest.h>

#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

void expect_loads(const char* model, std::uint64_t max_file_bytes) {
  const TemporaryFolder folder;
  const fs::path golden = fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / model;
  import_from_hugging_face(golden, folder / "run");
  export_to_hugging_face(folder / "run", folder / "hf", max_file_bytes);
  const int status =
      run_oracle("hugging_face_reads_ours.py", {(folder / "hf").string(), golden.string()}, folder / "log");
  EXPECT_EQ(status, 0) << bytes_of_file(folder / "log");
}

TEST(HuggingFaceOracle, TransformersLoadsOurExportAsTheSameModel) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* model : {"gpt2_tiny", "bert_tiny", "llama_tiny", "mistral_tiny", "qwen2_tiny", "qwen3_tiny",
                            "gpt_neox_tiny", "bert_classification", "bert_choice", "bert_spans", "bert_tokens",
                            "roberta_tiny", "roberta_classification", "distilbert_tiny", "distilbert_classification"}) {
    expect_loads(model, 0);
  }
}

TEST(HuggingFaceOracle, TransformersLoadsOurShards) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* model : {"llama_tiny", "qwen2_tiny", "gpt_neox_tiny"}) expect_loads(model, 3000);
}

}  // namespace
}  // namespace teratron::testing
