// The graphs of attention as cuDNN sees them: that each is well formed can be known without a device, by finalizing it.
// That they compute attention is proven on the emulated GPU (tests/emulated_gpu/cudnn_engine.cc); that there are
// kernels for them only a GPU can show (scripts/gpu_check).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "ops/cuda/cudnn/cudnn_attention_graphs.h"
#include "ops/cuda/cudnn/cudnn_engine.h"
#include "ops/cuda/cudnn/cudnn_graph_descriptor.h"

namespace teratron::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Sizes of a call, and views of memory that is never touched.
struct Call {
  DType dtype = DType::kBF16;
  std::int64_t batch = 2, queries = 128, keys = 128, heads = 3, head_size = 64;
  bool causal = true, packed = true;

  std::string text() const {
    return fmt::format("{} B={} S_q={} S_k={} H={} D={} causal={} packed={}", name_of(dtype), batch, queries, keys,
                       heads, head_size, causal, packed);
  }

  TensorRef plain(std::int64_t rows) const { return {memory, dtype, {batch, rows, heads, head_size}}; }
  // Part 0, 1 or 2 of the packed projection of as many tokens as there are keys: rows [begin, end) of it.
  TensorRef part(int number, std::int64_t begin, std::int64_t end) const {
    if (!packed) return plain(end - begin);
    return TensorRef(memory, dtype, {batch, keys, 3, heads, head_size}).select(2, number).slice(1, begin, end);
  }

  AttentionForward forward() const {
    return {.out = plain(queries),
            .log_sum_exp = {memory, DType::kF32, {batch, heads, queries}},
            .q = part(0, keys - queries, keys),
            .k = part(1, 0, keys),
            .v = part(2, 0, keys),
            .causal = causal,
            .scale = 0.125};
  }

  AttentionBackward backward() const {
    return {.dq = part(0, keys - queries, keys),
            .dk = part(1, 0, keys),
            .dv = part(2, 0, keys),
            .dout = plain(queries),
            .forward = forward()};
  }

  alignas(256) static inline char memory[256] = {};
};

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const std::int64_t head_size : {8, 64, 96, 128}) {
      for (const bool causal : {true, false}) {
        for (const bool packed : {true, false}) {
          Call call{.dtype = dtype, .head_size = head_size, .causal = causal, .packed = packed};
          for (const auto& [queries, keys] : {std::pair{1024, 1024}, {37, 37}, {2, 2}, {256, 768}, {17, 101}}) {
            call.queries = queries;
            call.keys = keys;
            calls.push_back(call);
          }
        }
      }
    }
  }
  return calls;
}

class CudnnGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      library_ = &cudnn_library();
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void finalize(const Graph& graph) const { const GraphDescriptor made(*library_, graph, nullptr); }

  const CudnnLibrary* library_ = nullptr;
};

TEST_F(CudnnGraphs, OfForwardPassesAreWellFormed) {
  for (const Call& call : all_calls()) {
    ASSERT_TRUE(takes_cudnn(call.forward(), 8)) << call.text();
    EXPECT_NO_THROW(finalize(attention_graph(call.forward()).graph)) << call.text();
  }
}

TEST_F(CudnnGraphs, OfBackwardPassesAreWellFormed) {
  for (const Call& call : all_calls()) {
    ASSERT_TRUE(takes_cudnn(call.backward(), 8)) << call.text();
    EXPECT_NO_THROW(finalize(attention_graph(call.backward()).graph)) << call.text();
  }
}

TEST_F(CudnnGraphs, ThatCannotBeAreRefusedInTheLibrarysWords) {
  Graph graph;
  const Extents left = {1, 1, 16, 8}, right = {1, 1, 24, 16};  // 8 columns, 24 rows
  const TensorId x = graph.memory(DType::kBF16, left, contiguous_strides(left));
  const TensorId b = graph.memory(DType::kBF16, right, contiguous_strides(right));
  graph.matmul(x, b);
  EXPECT_THAT([&] { finalize(graph); },
              ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("cuDNN failed: the operation of a matrix product"),
                                                    HasSubstr("CUDNN_STATUS_BAD_PARAM"))));
}

TEST_F(CudnnGraphs, WithAnImpossibleAttributeNameIt) {
  Descriptor tensor(*library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
  EXPECT_THAT([&] { tensor.set(CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{1}); },
              ThrowsMessage<EnvironmentError>(HasSubstr("attribute 9 of a tensor")));
}

TEST_F(CudnnGraphs, RunNowhereWithoutADevice) {
  try {
    const CudnnEngine engine(nullptr);
    GTEST_SKIP() << "there is a GPU here";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuDNN failed: its start: CUDNN_STATUS_"));
  }
}

TEST(CudnnLibrary, ThatIsNotThereSaysWhatToDo) {
  EXPECT_THAT([] { load_cudnn({"/nowhere/libcudnn.so.9"}); },
              ThrowsMessage<EnvironmentError>(
                  AllOf(HasSubstr("/nowhere/libcudnn.so.9"), HasSubstr("leave out --cudnn-attention"))));
}

TEST(CudnnLibrary, OfAnotherKindIsRefused) {
  EXPECT_THAT([] { load_cudnn({"libc.so.6"}); },
              ThrowsMessage<EnvironmentError>(HasSubstr("no function cudnnGetVersion")));
}

TEST(TakesCudnn, LeavesToOurKernelsWhatItCannotDo) {
  const AttentionForward forward = Call{}.forward();
  EXPECT_TRUE(takes_cudnn(forward, 9));
  EXPECT_FALSE(takes_cudnn(forward, 7));
  EXPECT_FALSE(takes_cudnn(Call{.dtype = DType::kF32}.forward(), 9));
  EXPECT_FALSE(takes_cudnn(Call{.queries = 1}.forward(), 9));
  for (const std::int64_t head_size : {5, 20, 136}) {
    EXPECT_FALSE(takes_cudnn(Call{.head_size = head_size}.forward(), 9)) << head_size;
  }
  AttentionForward other = forward;
  other.dropout.probability = 0.1;
  EXPECT_FALSE(takes_cudnn(other, 9));
  other = forward;
  other.k.data = Call::memory + 8;
  EXPECT_FALSE(takes_cudnn(other, 9));
  other = forward;
  other.log_sum_exp.data = Call::memory + 4;
  EXPECT_FALSE(takes_cudnn(other, 9));
  other = forward;
  other.v.strides[1] += 4;
  EXPECT_FALSE(takes_cudnn(other, 9));
}

TEST(TakesCudnn, LeavesGradientsThatAreAddedToOrOfAnotherTypeToOurKernels) {
  const AttentionBackward backward = Call{}.backward();
  EXPECT_TRUE(takes_cudnn(backward, 9));
  AttentionBackward other = backward;
  other.accumulate_kv = true;
  EXPECT_FALSE(takes_cudnn(other, 9));
  other = backward;
  other.dk = TensorRef(Call::memory, DType::kF32, backward.dk.shape);
  EXPECT_FALSE(takes_cudnn(other, 9));
  other = backward;
  other.dq.data = Call::memory + 2;
  EXPECT_FALSE(takes_cudnn(other, 9));
  other = backward;
  other.forward.dropout.probability = 0.5;
  EXPECT_FALSE(takes_cudnn(other, 9));
}

}  // namespace
}  // namespace teratron::cuda
