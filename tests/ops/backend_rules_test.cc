// Steps of every Backend before its kernels run: arguments are checked, the observer is called, empty work returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "ops/failing_backend.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The message of the InternalError that `work` throws, or "" if it throws none.
std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

class Recorder : public CallObserver {
 public:
  void begin(std::string_view operation) override { calls.push_back("begin " + std::string(operation)); }
  void end(std::string_view operation) override { calls.push_back("end " + std::string(operation)); }
  std::vector<std::string> calls;
};

class BackendRules : public ::testing::Test {
 protected:
  Tensor zeros(const Shape& shape) {
    return make_tensor(*backend_, shape, Values(static_cast<std::size_t>(shape.elements()), 0.0));
  }
  std::unique_ptr<Backend> backend_ = make_reference_backend(DType::kF32);
  Random random_{1};
};

TEST_F(BackendRules, AMisshapenArgumentIsNamedWithBothShapes) {
  const Tensor y = zeros({3, 4}), x = zeros({3, 5}), weight = zeros({5, 4}), bias = zeros({4});
  EXPECT_THAT(error_of([&] { backend_->linear_forward({.y = y, .x = x, .weight = weight, .bias = bias}); }),
              HasSubstr("linear_forward: shape of weight: got [5, 4], expected 4 rows of 5"));
}

TEST_F(BackendRules, AMissingArgumentIsNamed) {
  const Tensor x = zeros({3, 5}), gamma = zeros({5}), mean = zeros({3}), rstd = zeros({3}), y = zeros({3, 5});
  EXPECT_THAT(error_of([&] {
                backend_->layer_norm_forward({.y = y, .mean = mean, .rstd = rstd, .x = x, .gamma = gamma, .beta = {}});
              }),
              HasSubstr("beta"));
}

TEST_F(BackendRules, AnotherDTypeIsRefused) {
  const Tensor to = zeros({4});
  const Tensor from(*backend_, DType::kF64, {4});
  EXPECT_THAT(error_of([&] { backend_->add(to, from); }), HasSubstr("add: dtype of from: got f64, expected f32"));
}

TEST_F(BackendRules, AStridedViewIsRefusedWhereKernelsNeedContiguousOnes) {
  const Tensor wide = zeros({4, 6}), narrow = zeros({4, 3});
  EXPECT_THAT(error_of([&] { backend_->add(narrow, wide.ref().slice(1, 0, 3)); }), HasSubstr("not contiguous"));
}

TEST_F(BackendRules, AnOutputOverAnInputIsRefused) {
  const Tensor memory = zeros({20}), weight = zeros({4, 4});
  const TensorRef x = memory.ref().slice(0, 0, 12).reshape({3, 4}), y = memory.ref().slice(0, 8, 20).reshape({3, 4});
  EXPECT_THAT(error_of([&] { backend_->linear_forward({.y = y, .x = x, .weight = weight}); }),
              HasSubstr("y overlaps x"));
}

TEST_F(BackendRules, DropoutBeyondTheSequenceIsRefused) {
  const Tensor sum = zeros({2, 5, 3}), branch = zeros({2, 5, 3});
  const Dropout dropout{.probability = 0.1, .random = {}, .sequence_length = 8, .first_position = 4};
  EXPECT_THAT(
      error_of([&] { backend_->residual_add({.sum = sum, .residual = sum, .branch = branch, .dropout = dropout}); }),
      HasSubstr("within the sequence"));
}

TEST_F(BackendRules, FewerKeysThanQueriesAreRefused) {
  const Tensor q = zeros({1, 4, 1, 2}), k = zeros({1, 3, 1, 2}), v = zeros({1, 3, 1, 2}), out = zeros({1, 4, 1, 2});
  const Tensor log_sum_exp = zeros({1, 1, 4});
  EXPECT_THAT(
      error_of([&] {
        backend_->attention_forward({.out = out, .log_sum_exp = log_sum_exp, .q = q, .k = k, .v = v, .scale = 1});
      }),
      HasSubstr("queries are the last"));
}

TEST_F(BackendRules, LengthsOfRowsOfLogitsAreOfAsManyRowsEach) {
  const Tensor logits = zeros({4, 3}), max = zeros({4}), sum = zeros({4}), weight = zeros({4});
  const Tensor targets = make_ids(*backend_, {4}, {0, 0, 0, 0});
  const auto error_with = [&](const Tensor& lengths) {
    return error_of([&] {
      backend_->cross_entropy_backward({.logits = logits,
                                        .max = max,
                                        .sum = sum,
                                        .targets = targets,
                                        .weight = weight,
                                        .lengths = lengths,
                                        .valid_columns = 3});
    });
  };
  EXPECT_THAT(error_with(make_ids(*backend_, {3}, {1, 2, 3})), HasSubstr("each of the lengths is of as many rows"));
  EXPECT_THAT(error_with(zeros({2})), HasSubstr("dtype of lengths: got f32, expected i32"));
  EXPECT_EQ(error_with(make_ids(*backend_, {2}, {3, 1})), "");
}

TEST_F(BackendRules, LengthsAreAnIntegerForEachSequence) {
  const Shape shape{2, 3, 1, 2};
  const Tensor q = zeros(shape), k = zeros(shape), v = zeros(shape), out = zeros(shape), log_sum_exp = zeros({2, 1, 3});
  const auto error_with = [&](const Tensor& lengths) {
    return error_of([&] {
      backend_->attention_forward({.out = out,
                                   .log_sum_exp = log_sum_exp,
                                   .q = q,
                                   .k = k,
                                   .v = v,
                                   .lengths = lengths,
                                   .causal = false,
                                   .scale = 1});
    });
  };
  EXPECT_THAT(error_with(make_ids(*backend_, {3}, {1, 2, 3})), HasSubstr("shape of lengths: got [3], expected [2]"));
  EXPECT_THAT(error_with(zeros({2})), HasSubstr("dtype of lengths: got f32, expected i32"));
  EXPECT_EQ(error_with(make_ids(*backend_, {2}, {3, 0})), "");
}

TEST_F(BackendRules, TheObserverHearsBeginAndEndOfEachCall) {
  Recorder recorder;
  const Tensor a = zeros({4}), b = zeros({4});
  backend_->set_observer(&recorder);
  backend_->add(a, b);
  backend_->fill(a, 2);
  EXPECT_THAT(recorder.calls, ElementsAre("begin add", "end add", "begin fill", "end fill"));
}

TEST_F(BackendRules, TheObserverHearsNothingOfRefusedOrEmptyCalls) {
  Recorder recorder;
  const Tensor a = zeros({4}), b = zeros({3}), none = zeros({0, 4}), also_none = zeros({0, 4});
  backend_->set_observer(&recorder);
  EXPECT_NE(error_of([&] { backend_->add(a, b); }), "");
  backend_->add(none, also_none);
  EXPECT_THAT(recorder.calls, ElementsAre());
}

TEST(BackendCalls, EndAndLeaveEvenWhenTheWorkThrows) {
  Recorder recorder;
  FailingBackend backend;
  backend.set_observer(&recorder);
  std::array<float, 4> memory{};
  EXPECT_THROW(backend.fill({memory.data(), DType::kF32, {4}}, 1), EnvironmentError);
  EXPECT_THAT(recorder.calls, ElementsAre("begin fill", "end fill"));
  EXPECT_EQ(backend.entered, 1);
  EXPECT_EQ(backend.left, 1);
}

// Weight gradients of no rows are zero unless they are added to.
TEST_F(BackendRules, GradientsOfNoRowsAreZeroOrUnchanged) {
  for (const bool accumulate : {false, true}) {
    const Values kept = {accumulate ? 3.0 : 0.0, accumulate ? 4.0 : 0.0};
    const Tensor none_x = zeros({0, 1}), none_dy = zeros({0, 2});
    const Tensor dweight = make_tensor(*backend_, {2, 1}, {3, 4}), dbias = make_tensor(*backend_, {2}, {3, 4});
    backend_->linear_weight_gradient(
        {.dweight = dweight, .dy = none_dy, .x = none_x, .dbias = dbias, .accumulate = accumulate});
    EXPECT_EQ(download_values(*backend_, dweight), kept);
    EXPECT_EQ(download_values(*backend_, dbias), kept);
  }
}

TEST_F(BackendRules, KeyGradientsOfNoQueriesAreZeroOrUnchanged) {
  const Shape keys{1, 3, 2, 1}, queries{1, 0, 2, 1};
  for (const bool accumulate : {false, true}) {
    const Tensor q = zeros(queries), k = zeros(keys), v = zeros(keys), out = zeros(queries), dout = zeros(queries);
    const Tensor log_sum_exp = zeros({1, 2, 0}), dq = zeros(queries);
    const Values before = {1, 2, 3, 4, 5, 6};
    const Tensor dk = make_tensor(*backend_, keys, before), dv = make_tensor(*backend_, keys, before);
    backend_->attention_backward(
        {.dq = dq,
         .dk = dk,
         .dv = dv,
         .dout = dout,
         .forward = {.out = out, .log_sum_exp = log_sum_exp, .q = q, .k = k, .v = v, .scale = 1},
         .accumulate_kv = accumulate});
    EXPECT_EQ(download_values(*backend_, dk), accumulate ? before : Values(6, 0.0));
    EXPECT_EQ(download_values(*backend_, dv), accumulate ? before : Values(6, 0.0));
  }
}

}  // namespace
}  // namespace teratron::testing
