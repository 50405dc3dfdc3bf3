// The graphs of attention, without a device: that they describe the call, that cudnn-frontend finds them valid, and
// that cuDNN has kernels for them on cards whose properties are written here. Only a GPU can show the kernels' results
// (on_gpu_test.cc and the tests of operations, by .gpu/run check).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "cuda_libraries/cudnn/attention_call.h"
#include "ops/cuda/cudnn/cudnn_graphs.h"
#include "ops/cuda/cudnn/cudnn_library.h"
#include "ops/cuda/cudnn/takes_cudnn.h"

namespace teratron::testing {
namespace {

using namespace cuda;
using cudnn_frontend::DataType_t;
using cudnn_frontend::HeurMode_t;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int kCalls = 200;

class CudnnGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      cudnn_library();
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

// Where an element [b, s, h, d] of the call's view lies, by the view and by the graph.
std::int64_t place_in_view(const TensorRef& view, const std::array<std::int64_t, 4>& at) {
  if (view.shape.rank() == 3) return (at[0] * view.dim(1) + at[2]) * view.dim(2) + at[1];  // [B, H, S]
  return at[0] * view.stride(0) + at[1] * view.stride(1) + at[2] * view.stride(2) + at[3];
}

std::int64_t place_in_graph(const cudnn_frontend::graph::Tensor_attributes& tensor,
                            const std::array<std::int64_t, 4>& at) {
  const auto strides = tensor.get_stride();
  return at[0] * strides[0] + at[2] * strides[1] + at[1] * strides[2] + at[3] * strides[3];
}

template <class Args>
void expect_valid_and_as_called(const Args& args, const std::string& text, Random& random) {
  const auto graph = attention_graph(args, 90);
  ASSERT_NO_THROW(require(graph->validate(), "its check")) << text;
  for (const auto& [id, view] : tensors_of(args)) {
    cudnn_frontend::graph::Tensor_attributes tensor;
    ASSERT_TRUE(graph->query_tensor_attributes_of_uid(id, tensor).is_good()) << text << ", tensor " << id;
    const bool is_f32 = id == kLogSumExp;
    const DataType_t half = view.dtype == DType::kF16 ? DataType_t::HALF : DataType_t::BFLOAT16;
    EXPECT_EQ(tensor.get_data_type(), is_f32 ? DataType_t::FLOAT : half) << text << ", tensor " << id;
    EXPECT_FALSE(tensor.get_is_virtual()) << text << ", tensor " << id;
    const auto sizes = tensor.get_dim();
    const std::int64_t rows = view.dim(is_f32 ? 2 : 1), heads = view.dim(is_f32 ? 1 : 2),
                       columns = is_f32 ? 1 : view.dim(3);
    ASSERT_THAT(sizes, ElementsAreArray({view.dim(0), heads, rows, columns})) << text << ", tensor " << id;
    for (int i = 0; i < 10; ++i) {
      const std::array<std::int64_t, 4> at = {random.below(view.dim(0)), random.below(rows), random.below(heads),
                                              random.below(columns)};
      ASSERT_EQ(place_in_graph(tensor, at), place_in_view(view, at)) << text << ", tensor " << id;
    }
  }
}

TEST_F(CudnnGraphs, AreValidAndDescribeTheCall) {
  Random random(1);
  for (int i = 0; i < kCalls; ++i) {
    const AttentionCall call = AttentionCall::random(random);
    ASSERT_TRUE(takes_cudnn(call.forward(), 9) && takes_cudnn(call.backward(), 9)) << call.text();
    expect_valid_and_as_called(call.forward(), call.text(), random);
    expect_valid_and_as_called(call.backward(), call.text(), random);
  }
}

TEST_F(CudnnGraphs, ThatCannotBeAreRefusedInTheLibrarysWords) {
  const auto graph = attention_graph(AttentionCall{.head_size = 136}.backward(), 90);
  EXPECT_NO_THROW(require(graph->validate(), "its check"));  // Hopper has larger heads
  const auto older = attention_graph(AttentionCall{.head_size = 136}.backward(), 80);
  EXPECT_THAT([&] { require(older->validate(), "its check"); },
              ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("cuDNN failed: its check"), HasSubstr("hidden_dim"))));
}

// A card, in the words in which cuDNN writes one down.
std::shared_ptr<cudnn_frontend::DeviceProperties> card(int compute_capability) {
  const bool is_small = compute_capability == 86 || compute_capability == 89 || compute_capability == 120;
  const int shared_memory = is_small ? 101376 : compute_capability == 80 ? 166912 : 232448;
  const std::string text = fmt::format(
      R"({{"deviceVer":{},"cudaDeviceId":0,"driverVer":13000,"totalGlobalMem":85000000000,)"
      R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
      R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
      R"("maxCtasPerSM":{},"maxThreadsPerBlock":1024,"maxThreadsPerSM":{},"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,)"
      R"("deviceName":"a card of a test"}})",
      10 * compute_capability, is_small ? 84 : 108, shared_memory, is_small ? 16 : 32, is_small ? 1536 : 2048);
  auto made = std::make_shared<cudnn_frontend::DeviceProperties>();
  require(made->deserialize({text.begin(), text.end()}), "the properties of a card");
  return made;
}

// Everything but the last step of a build, which loads the kernels onto a device.
template <class Args>
void expect_kernels(const Args& args, int compute_capability, std::int64_t least_workspace) {
  const auto graph = attention_graph(args, compute_capability);
  graph->set_device_properties(card(compute_capability));
  require(graph->validate(), "its check");
  require(graph->build_operation_graph(), "its operations");
  require(graph->create_execution_plans({HeurMode_t::A, HeurMode_t::FALLBACK}), "the choice of kernels");
  require(graph->check_support(), "the kernels chosen");
  std::vector<std::int64_t> bound;
  for (const auto& [id, view] : tensors_of(args)) bound.push_back(id);
  require(graph->prepare_variant_pack_template(), "the memory of a run");
  EXPECT_THAT(graph->get_variant_pack_uids_sorted(), ElementsAreArray(bound));
  EXPECT_GE(graph->get_autotune_workspace_size(), least_workspace);
}

// Whole sequences and slices: fewer queries than keys, and as few as two. Kernels are refused where the driver's
// library cannot be loaded; the toolkit's stub of it is enough.
TEST_F(CudnnGraphs, HaveKernelsOnEveryGenerationOfCards) {
  if (cudnn_frontend::detail::get_backend_version() < 91900) {
    GTEST_SKIP() << "what cuDNN before 9.19 lacks is not known; our own kernels compute it";
  }
  if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr && dlopen(TERATRON_DRIVER_STUB, RTLD_NOW) == nullptr) {
    GTEST_SKIP() << "cuDNN chooses no kernels without the driver's library: " << dlerror();
  }
  Random random(2);
  for (const int compute_capability : {80, 86, 89, 90, 100, 120}) {
    for (int i = 0; i < 15; ++i) {
      const AttentionCall call = AttentionCall::random(random);
      const std::int64_t rows = call.batch * call.query_heads() * call.queries;
      SCOPED_TRACE(fmt::format("{} on {}", call.text(), compute_capability));
      EXPECT_NO_THROW(expect_kernels(call.forward(), compute_capability, 0));
      // Sums of dO O in fp32.
      EXPECT_NO_THROW(expect_kernels(call.backward(), compute_capability, 4 * rows));
    }
  }
}

// A plan for one call must not be used for another.
TEST(CudnnGraphKeys, DifferWhereCallsDo) {
  std::vector<AttentionBackward> calls;
  for (const AttentionCall& call : std::vector<AttentionCall>{{},
                                                              {.dtype = DType::kF16},
                                                              {.batch = 3},
                                                              {.queries = 64},
                                                              {.keys = 256},
                                                              {.heads = 2},
                                                              {.head_size = 128},
                                                              {.causal = false},
                                                              {.packed = false},
                                                              {.scale = 0.25}}) {
    calls.push_back(call.backward());
  }
  using Forward = AttentionForward;
  for (TensorRef Forward::*view : {&Forward::q, &Forward::k, &Forward::v, &Forward::out}) {
    (calls.emplace_back(calls.front()).forward.*view).strides[1] += 8;
  }
  std::set<CudnnGraphKey> keys;
  for (const AttentionBackward& call : calls) keys.insert(key_of(call.forward));
  EXPECT_EQ(keys.size(), calls.size());

  using Backward = AttentionBackward;
  for (TensorRef Backward::*view : {&Backward::dq, &Backward::dk, &Backward::dv, &Backward::dout}) {
    (calls.emplace_back(calls.front()).*view).strides[1] += 8;
  }
  for (const AttentionBackward& call : calls) keys.insert(key_of(call));
  EXPECT_EQ(keys.size(), 2 * calls.size() - 4);
}

TEST_F(CudnnGraphs, RunNowhereWithoutADevice) {
  try {
    const CudnnHandle handle(nullptr);
    GTEST_SKIP() << "there is a GPU here";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuDNN failed: its start: CUDNN_STATUS_"));
  }
}

TEST(CudnnLibrary, ThatIsNotThereSaysWhatToDo) {
  EXPECT_THAT([] { load_cudnn({"/nowhere/libcudnn.so.9"}); },
              ThrowsMessage<EnvironmentError>(
                  AllOf(HasSubstr("/nowhere/libcudnn.so.9"), HasSubstr("leave out --cudnn-attention on"))));
}

TEST(CudnnLibrary, RefusesAnotherKind) {
  EXPECT_THAT([] { load_cudnn({"libc.so.6"}); },
              ThrowsMessage<EnvironmentError>(HasSubstr("no function cudnnGetVersion")));
}

}  // namespace
}  // namespace teratron::testing
