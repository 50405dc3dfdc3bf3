// Fusions (fusion_test.cc) where memory for sums, or for timing, is short. Each test has shapes of its own.
#include <gtest/gtest.h>

#include <utility>

#include "emulated_gpu/fused_layer.h"

namespace teratron::testing {
namespace {

// Leaves the device as much, until it ends.
class MemoryLeft {
 public:
  explicit MemoryLeft(std::size_t bytes) { emulated::set_device_memory(emulated::device_memory_in_use() + bytes); }
  ~MemoryLeft() { emulated::set_device_memory(std::size_t{8} << 30); }
};

// Sums of an input gradient before GELU's derivative, in fp32, take 64 KiB here, and activations of a trial 32. They
// are faster, for outputs that 16 does not divide.
TEST(Fusions, AreTheUsualOnesWhereMemoryIsShort) {
  constexpr std::int64_t kRows = 2, kInputs = 1 << 13, kOutputs = 40;
  const auto input_gradient = [](Backend& gpu, std::size_t left) {
    FusedLayer layer(gpu, kRows, kInputs, kOutputs);
    const MemoryLeft memory(left);
    layer.input_gradient();
    return layer.input_gradient();
  };
  // The first choice that is kept is that of the second back end.
  for (const auto& [left, epilogue] : {std::pair(1 << 14, CUBLASLT_EPILOGUE_DGELU),
                                       {1 << 18, CUBLASLT_EPILOGUE_DEFAULT},
                                       {1 << 14, CUBLASLT_EPILOGUE_DGELU},
                                       {1 << 18, CUBLASLT_EPILOGUE_DEFAULT}}) {
    const auto gpu = make_timed();
    EXPECT_EQ(input_gradient(*gpu, static_cast<std::size_t>(left)), once(epilogue)) << left << " bytes left";
  }
}

TEST(Fusions, AreTimedInMemoryThatIsGivenBack) {
  const auto gpu = make_timed();
  constexpr std::int64_t kOutputs = 1008;  // too few terms to be split, which would be faster without the epilogue
  FusedLayer layer(*gpu, 2, 16, kOutputs);
  layer.input_gradient();  // sums in fp32, in memory of their own, are no faster
  const std::size_t before = emulated::device_memory_in_use();
  layer.weight_gradient(true);
  const std::int64_t kept = gpu->taken_bytes();
  EXPECT_EQ(emulated::device_memory_in_use() - before, kOutputs * sizeof(float)) << "the sums of one gradient";
  EXPECT_EQ(layer.input_gradient(), once(CUBLASLT_EPILOGUE_DGELU));
  EXPECT_EQ(gpu->taken_bytes(), kept);
}

// There is none for a second gradient of the weight.
TEST(Fusions, AreNotTimedWhereResultsAreStillNeededAndMemoryIsShort) {
  const auto gpu = make_timed();
  FusedLayer layer(*gpu, 4, 24, 1 << 12);
  const Values before = layer.dbias(), sums = layer.sums_of_rows();
  {
    const MemoryLeft memory(1 << 17);
    EXPECT_EQ(layer.weight_gradient(true).size(), 1U);
    EXPECT_EQ(layer.weight_gradient(true), once(CUBLASLT_EPILOGUE_DEFAULT));
  }
  const Values after = layer.dbias();
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(after[i], before[i] + 2 * sums[i], 1e-4);
}

}  // namespace
}  // namespace teratron::testing
