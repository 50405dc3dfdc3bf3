// Which calls are cuDNN's: a random call that has everything, and not one that lacks any of it.
#include "ops/cuda/cudnn/takes_cudnn.h"

#include <gtest/gtest.h>

#include <functional>

#include "cuda_libraries/cudnn/attention_call.h"

namespace teratron::testing {
namespace {

using cuda::takes_cudnn;

constexpr int kCalls = 300;

template <class Args>
struct Obstacle {
  std::string name;
  std::function<void(Args&)> put;
};

void shift(TensorRef& view, std::int64_t bytes) { view.data = static_cast<char*>(view.data) + bytes; }

std::vector<Obstacle<AttentionForward>> obstacles(Random& random) {
  std::vector<Obstacle<AttentionForward>> all = {
      {"dropout", [](auto& args) { args.dropout.probability = 0.1; }},
      {"lengths",
       [](auto& args) {
         args.lengths = {AttentionCall::memory, DType::kI32, {args.q.dim(0)}};
       }},
      {"statistics off 16 bytes", [](auto& args) { shift(args.log_sum_exp, 4); }},
      {"one query", [](auto& args) { args.q = args.q.slice(1, 0, 1); }},
      {"fp32", [](auto& args) { args.q.dtype = args.k.dtype = args.v.dtype = args.out.dtype = DType::kF32; }},
      {"a head that is no multiple of 8",
       [&random](auto& args) {
         args.q.shape = {args.q.dim(0), args.q.dim(1), args.q.dim(2), 1 + random.below(7)};
       }},
      {"a head of more than 128",
       [](auto& args) {
         args.q.shape = {args.q.dim(0), args.q.dim(1), args.q.dim(2), 136};
       }},
  };
  using Member = TensorRef AttentionForward::*;
  for (const Member view : {&AttentionForward::q, &AttentionForward::k, &AttentionForward::v, &AttentionForward::out}) {
    all.push_back({"a view off 16 bytes", [view, &random](auto& args) { shift(args.*view, 2 + 2 * random.below(7)); }});
    const auto axis = static_cast<std::size_t>(random.below(3));
    all.push_back({"rows off 16 bytes", [view, axis](auto& args) { (args.*view).strides[axis] += 4; }});
  }
  return all;
}

std::vector<Obstacle<AttentionBackward>> obstacles_backward(Random& random) {
  std::vector<Obstacle<AttentionBackward>> all = {{"sums", [](auto& args) { args.accumulate_kv = true; }}};
  for (const auto& obstacle : obstacles(random)) {
    all.push_back({obstacle.name, [obstacle](auto& args) { obstacle.put(args.forward); }});
  }
  using Member = TensorRef AttentionBackward::*;
  for (const Member view :
       {&AttentionBackward::dq, &AttentionBackward::dk, &AttentionBackward::dv, &AttentionBackward::dout}) {
    all.push_back({"a gradient of fp32", [view](auto& args) { (args.*view).dtype = DType::kF32; }});
    all.push_back({"a gradient off 16 bytes", [view](auto& args) { shift(args.*view, 8); }});
    all.push_back({"a gradient's rows off 16 bytes", [view](auto& args) { (args.*view).strides[1] += 4; }});
  }
  return all;
}

template <class Args>
void expect_taken_without(const std::vector<Obstacle<Args>>& obstacles, const Args& args, const std::string& text) {
  for (const int major : {8, 9, 10, 12}) EXPECT_TRUE(takes_cudnn(args, major)) << text;
  EXPECT_FALSE(takes_cudnn(args, 7)) << text;
  for (const auto& [name, put] : obstacles) {
    Args with = args;
    put(with);
    EXPECT_FALSE(takes_cudnn(with, 9)) << text << " with " << name;
  }
}

TEST(TakesCudnn, ForwardPassesUnlessAnythingIsInTheWay) {
  Random random(1);
  for (int i = 0; i < kCalls; ++i) {
    const AttentionCall call = AttentionCall::random(random);
    expect_taken_without(obstacles(random), call.forward(), call.text());
  }
}

TEST(TakesCudnn, BackwardPassesUnlessAnythingIsInTheWay) {
  Random random(2);
  for (int i = 0; i < kCalls; ++i) {
    const AttentionCall call = AttentionCall::random(random);
    expect_taken_without(obstacles_backward(random), call.backward(), call.text());
  }
}

}  // namespace
}  // namespace teratron::testing
