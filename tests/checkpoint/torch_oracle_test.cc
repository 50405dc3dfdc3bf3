// PyTorch's files of random tensors, which are read value by value as PyTorch has them.
#include <gtest/gtest.h>

#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/torch/torch_file.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(TorchOracle, RandomTensorsAreReadAsPyTorchHasThem) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  for (const std::string seed : {"1", "2"}) {
    const auto pickled = folder / (seed + ".pt"), plain = folder / (seed + ".safetensors");
    ASSERT_EQ(run_oracle("torch_saves.py", {seed, pickled.string(), plain.string()}, folder / "log"), 0)
        << bytes_of_file(folder / "log");
    const TorchFile file(pickled);
    const SafetensorsFile expected(plain);
    ASSERT_EQ(file.content().items.size(), 2 * expected.tensors().size());
    for (const SafetensorsEntry& entry : expected.tensors()) {
      const auto tensor = file.tensor(*file.content().find(entry.name), entry.name);
      ASSERT_TRUE(tensor) << entry.name;
      EXPECT_EQ(tensor->dtype, entry.dtype) << entry.name;
      EXPECT_EQ(tensor->shape, entry.shape) << entry.name;
      file.require_intact(*tensor);
      std::string bytes;
      file.pass_on(*tensor, [&](std::span<const std::byte> piece) { bytes += text_of_bytes(piece); });
      EXPECT_EQ(bytes, text_of_bytes(expected.bytes(entry))) << entry.name;
    }
  }
}

TEST(TorchOracle, ModelsWhoseStateItSavedAreThoseOfTheirSafetensors) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  ASSERT_EQ(run_oracle("pickled_models.py", {(folder / "models").string()}, folder / "log"), 0)
      << bytes_of_file(folder / "log");
  for (const std::string name : {"gpt2", "bert", "llama"}) {
    const auto imported = [&](const std::string& form) {
      const auto checkpoint =
          import_from_hugging_face(folder / "models" / name / form, folder / fmt::format("{}-{}", name, form));
      return bytes_of_file(checkpoint / "model.safetensors");
    };
    const std::string expected = imported("safetensors");
    EXPECT_EQ(imported("pickled"), expected) << name;
    EXPECT_EQ(imported("old"), expected) << name;
  }
}

}  // namespace
}  // namespace teratron::testing
