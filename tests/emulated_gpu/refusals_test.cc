// What a GPU refuses, the emulated one refuses too.
#include <cublasLt.h>
#include <gmock/gmock.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "base/float_types.h"
#include "emulated_gpu/tensor_core.h"
#include "ops/backend.h"
#include "ops/cuda/attention/attention_hopper.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/ptx.h"
#include "ops/cuda/linear/gemm.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::testing {
namespace {

using namespace cuda;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void touch_nothing(int) {}
void touch_nothing_either(int) {}

cudaError_t launch_with(std::size_t shared_bytes, void (*kernel)(int)) {
  cudaLaunchConfig_t config = {};
  config.dynamicSmemBytes = shared_bytes;
  return cudaLaunchKernelEx(&config, kernel, 0);
}

TEST(Refusals, HopperAttentionOnOtherDevices) {
  EXPECT_NO_THROW(require_hopper(cudaDeviceProp{}));
  cudaDeviceProp other;
  other.major = 12;
  EXPECT_THAT(
      [&] { require_hopper(other); },
      ThrowsMessage<EnvironmentError>(HasSubstr("needs a device of compute capability 9.0, and emulated has 12.0")));
}

TEST(Refusals, SharedMemoryThatWasNotAskedFor) {
  EXPECT_EQ(launch_with(40 << 10, touch_nothing), cudaSuccess);
  EXPECT_EQ(launch_with(48 << 10, touch_nothing), cudaErrorInvalidValue) << "no room for what is static";
  launch(nullptr, {.shared_bytes = 96 << 10}, touch_nothing, 0);  // which asks
  EXPECT_EQ(launch_with(96 << 10, touch_nothing), cudaSuccess);
  launch(nullptr, {.shared_bytes = 40 << 10}, touch_nothing, 0);  // and takes nothing back
  EXPECT_EQ(launch_with(96 << 10, touch_nothing), cudaSuccess);
  EXPECT_EQ(launch_with(96 << 10, touch_nothing_either), cudaErrorInvalidValue);
  EXPECT_THROW(launch(nullptr, {.shared_bytes = 228 << 10}, touch_nothing, 0), EnvironmentError);
}

alignas(16) std::array<float, 64> device_floats;

void copy_from(const float* from) {
  start_copy_16(dynamic_shared<float>(), from);
  commit_copies();
  wait_for_copies<0>();
}

TEST(Refusals, AsynchronousCopiesThatAreNotAligned) {
  const LaunchShape shape{.grid = dim3(1), .block = dim3(32), .shared_bytes = 16};
  launch(nullptr, shape, copy_from, device_floats.data() + 4);
  EXPECT_THAT([&] { launch(nullptr, shape, copy_from, device_floats.data() + 1); },
              ThrowsMessage<InternalError>(HasSubstr("misaligned address")));
  launch(nullptr, shape, copy_from, device_floats.data());  // the emulator is as before
}

TEST(RefusalsDeathTest, VectorsThatAreNotAligned) {
  EXPECT_EQ(load_chunk<4>(device_floats.data() + 4)[0], 0);
  EXPECT_DEATH(load_chunk<4>(device_floats.data() + 1), "misaligned address");
}

TEST(Refusals, BiasThatIsNotAligned) {
  std::vector<float> a(16 * 16, 1), c(16 * 16), bias(32);
  Gemm gemm(nullptr, {.timing = false});
  const auto view = [](std::vector<float>& of, std::int64_t from) {
    return TensorRef(of.data() + from, DType::kF32, {16});
  };
  Product product{.c = TensorRef(c.data(), DType::kF32, {16, 16}),
                  .a = TensorRef(a.data(), DType::kF32, {16, 16}),
                  .b = TensorRef(a.data(), DType::kF32, {16, 16}),
                  .bias = view(bias, 0)};
  EXPECT_TRUE(gemm.try_fused(product));
  product.bias = view(bias, 1);
  EXPECT_FALSE(gemm.try_fused(product)) << "which the library would read in pieces of 16 bytes";

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const void* const at = bias.data() + 1;
  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof(at));
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 16);
  const cublasLtMatmulAlgo_t usual = {};
  const float one = 1;
  EXPECT_EQ(cublasLtMatmul(nullptr, operation, &one, a.data(), layout, a.data(), layout, &one, c.data(), layout,
                           c.data(), layout, &usual, nullptr, 0, nullptr),
            CUBLAS_STATUS_EXECUTION_FAILED);
  cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(operation);
}

// c[16, n] = a[16, 16] b[16, n] of bf16, with all that an epilogue may have, at its places.
class Epilogues : public ::testing::Test {
 protected:
  static TensorRef view(std::vector<Bf16>& of, const Shape& shape) { return {of.data(), DType::kBF16, shape}; }
  Product product(std::int64_t n = 16) {
    return {.c = view(c_, {16, n}), .a = view(a_, {16, 16}), .b = view(b_, {16, n})};
  }
  Product with_gelu(std::int64_t n = 16) {
    Product result = product(n);
    result.before_gelu = view(aux_, {16, n});
    return result;
  }
  Product with_bias_gradient() {
    Product result = product();
    result.c = {sums_.data(), DType::kF32, {16, 16}};
    result.bias_gradient = {vector_.data(), DType::kF32, {16}};
    return result;
  }
  bool fuses(const Product& product) { return gemm_.try_fused(product); }
  static void move(TensorRef& view, std::int64_t elements) {
    view.data = static_cast<std::byte*>(view.data) + elements * size_of(view.dtype);
  }

  Gemm gemm_{nullptr, {.timing = false}};
  std::vector<Bf16> a_ = std::vector<Bf16>(512), b_ = a_, c_ = a_, aux_ = a_;
  std::vector<float> sums_ = std::vector<float>(512), vector_ = std::vector<float>(64);
};

TEST_F(Epilogues, AreRefusedWhereTheirMatrixIsNotAligned) {
  EXPECT_TRUE(fuses(with_gelu()));
  EXPECT_FALSE(fuses(with_gelu(12))) << "rows of 8 elements";
  for (TensorRef Product::*part : {&Product::a, &Product::b, &Product::c, &Product::before_gelu}) {
    Product moved = with_gelu();
    move(moved.*part, 4);
    EXPECT_FALSE(fuses(moved));
    move(moved.*part, 4);
    EXPECT_TRUE(fuses(moved));
  }
}

TEST_F(Epilogues, AreRefusedWhereTheGradientOfABiasIsNotAligned) {
  EXPECT_TRUE(fuses(with_bias_gradient()));
  Product moved = with_bias_gradient();
  move(moved.bias_gradient, 2);
  EXPECT_FALSE(fuses(moved));
}

// As NVIDIA's header has it, whoever asks.
TEST_F(Epilogues, AreRefusedByTheLibraryItself) {
  struct Asked {
    std::int64_t aux_stride = 16;
    cudaDataType_t aux_type = CUDA_R_16BF, vector_type = CUDA_R_16BF;
    std::int64_t offset = 0;
  };
  const auto multiply = [&](cublasLtEpilogue_t epilogue, const Asked& asked) {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value));
    };
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux_.data() + asked.offset));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, asked.aux_stride);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, asked.aux_type);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(vector_.data()));
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, asked.vector_type);
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 16, 16, 16);
    const cublasLtMatmulAlgo_t usual = {};
    const float one = 1, zero = 0;
    void* const data = sums_.data();
    const cublasStatus_t status = cublasLtMatmul(nullptr, operation, &one, data, layout, data, layout, &zero, data,
                                                 layout, data, layout, &usual, nullptr, 0, nullptr);
    cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
    return status;
  };
  for (const auto epilogue : {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_DGELU}) {
    EXPECT_EQ(multiply(epilogue, {}), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(multiply(epilogue, {.aux_stride = 20}), CUBLAS_STATUS_INVALID_VALUE) << "not a multiple of 8";
    EXPECT_EQ(multiply(epilogue, {.aux_stride = 8}), CUBLAS_STATUS_INVALID_VALUE) << "shorter than a column";
    EXPECT_EQ(multiply(epilogue, {.aux_type = CUDA_R_16F}), CUBLAS_STATUS_INVALID_VALUE) << "not the result's type";
    EXPECT_EQ(multiply(epilogue, {.offset = 4}), CUBLAS_STATUS_EXECUTION_FAILED) << "not aligned";
  }
  for (const auto epilogue : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_BGRADB}) {
    EXPECT_EQ(multiply(epilogue, {}), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(multiply(epilogue, {.vector_type = CUDA_R_32F}), CUBLAS_STATUS_INVALID_VALUE) << "not the result's type";
  }
}

TEST(Refusals, WaitingAndMemoryDuringACapture) {
  const TimedEvent event;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_THROW(event.wait(), EnvironmentError);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaMallocHost(&more, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaFree(memory), cudaErrorStreamCaptureUnsupported);
  Scratch scratch(nullptr);
  EXPECT_THROW(scratch.bytes(16), InternalError);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(nullptr, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(Refusals, MoreMemoryThanThereIs) {
  const std::size_t before = emulated::device_memory_in_use();
  const auto backend = make_cuda_backend({.compute_dtype = DType::kF32});
  emulated::set_device_memory(emulated::device_memory_in_use() + (3 << 20));
  {
    const Tensor kept(*backend, DType::kF32, {1 << 19});  // 2 MiB
    EXPECT_THAT([&] { Tensor(*backend, DType::kF32, {1 << 19}); },
                ThrowsMessage<EnvironmentError>(HasSubstr("--micro-batch-size")));
    EXPECT_EQ(backend->bytes_left(), 1 << 20);
    backend->fill_zero(kept);  // nothing is lost
  }
  EXPECT_EQ(backend->bytes_left(), 3 << 20);
  Scratch scratch(nullptr);
  EXPECT_THROW(scratch.bytes(4 << 20), EnvironmentError);
  EXPECT_NE(scratch.bytes(2 << 20), nullptr);
  emulated::set_device_memory(std::size_t{8} << 30);
  EXPECT_GE(emulated::device_memory_in_use(), before);
}

TEST(TensorCores, RoundTowardZero) {
  const std::array<double, 2> halves = {0x1p-24, 0x1p-24};
  EXPECT_EQ(emulated::tensor_core_sum(1, halves), 1 + 0x1p-23F) << "bits of the products that are behind fp32's last";
  const std::array<double, 3> below = {0x1p-25, 0x1p-25, 0x1.8p-25};
  EXPECT_EQ(emulated::tensor_core_sum(1, below), 1) << "each is cut before they are added";
  const std::array<double, 1> three_quarters = {0x1.8p-24};
  EXPECT_EQ(emulated::tensor_core_sum(1, three_quarters), 1);
  EXPECT_EQ(emulated::tensor_core_sum(-1, std::array<double, 1>{-0x1.8p-24}), -1);
  EXPECT_EQ(emulated::tensor_core_sum(0x1p30F, std::array<double, 2>{-0x1p30, 3}), 0) << "3 is lost beside 2^30";
}

// Some virtual GPUs have none.
TEST(Refusals, MemoryPools) {
  emulated::set_memory_pools(false);
  {
    const std::size_t before = emulated::device_memory_in_use();
    MemoryMeter meter;
    Scratch scratch(nullptr, &meter);
    void* const small = scratch.bytes(1000);
    EXPECT_EQ(scratch.bytes(500), small);
    scratch.bytes(5000);
    EXPECT_EQ(emulated::device_memory_in_use(), before + 5000);
    EXPECT_EQ(meter.taken, 5000);
  }
  EXPECT_NO_THROW(make_cuda_backend());
  emulated::set_memory_pools(true);
}

}  // namespace
}  // namespace teratron::testing
