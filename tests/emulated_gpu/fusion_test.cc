// How much of a linear layer is computed within its product, on the emulated cuBLASLt: what is chosen, how often, and
// that each way gives the result. What is chosen is kept for the whole process (in a folder of back_ends()), so each
// test has shapes of its own.
#include "ops/cuda/linear/fusion.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "emulated_gpu/fused_layer.h"
#include "ops/algorithms/algorithm_cache.h"
#include "ops/algorithms/matrix_product.h"
#include "ops/back_ends.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

// A product with an epilogue, and the kernels of our own that do the rest.
struct Way {
  cublasLtEpilogue_t epilogue;
  int passes;
};

// Of a call in one of the ways, those first that win where times are equal.
cublasLtEpilogue_t fastest_of(std::initializer_list<Way> ways, std::int64_t terms) {
  const auto microseconds = [&](const Way& way) {
    return emulated::epilogue_microseconds(way.epilogue, terms) + way.passes * emulated::kLaunchMicroseconds;
  };
  return std::ranges::min(ways, {}, microseconds).epilogue;
}

TEST(Fusions, AreTheFastestOfTheirKindAndTimedOnce) {
  const auto gpu = make_timed();
  std::set<cublasLtEpilogue_t> taken;
  Random random(7);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t rows = 2 * (1 + random.below(7)), inputs = 8 * (1 + random.below(4)),
                       outputs = 8 * (1 + random.below(4));
    SCOPED_TRACE(fmt::format("{} rows, {} to {}", rows, inputs, outputs));
    FusedLayer layer(*gpu, rows, inputs, outputs);
    const auto expect = [&](const auto& call, std::initializer_list<Way> ways, std::int64_t terms) {
      call();
      const cublasLtEpilogue_t best = fastest_of(ways, terms);
      EXPECT_EQ(call(), once(best));
      taken.insert(best);
    };
    expect([&] { return layer.forward(); }, {{CUBLASLT_EPILOGUE_BIAS, 1}, {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 0}},
           inputs);
    EXPECT_EQ(layer.forward(Activation::kNone), once(CUBLASLT_EPILOGUE_BIAS)) << "whatever it takes";
    expect([&] { return layer.input_gradient(); }, {{CUBLASLT_EPILOGUE_DGELU, 1}, {CUBLASLT_EPILOGUE_DEFAULT, 1}},
           outputs);
    for (const bool accumulate : {false, true}) {
      expect([&] { return layer.weight_gradient(accumulate); },
             {{CUBLASLT_EPILOGUE_DEFAULT, 2}, {CUBLASLT_EPILOGUE_BGRADB, accumulate}}, rows);
    }
    const auto other = make_timed();  // which takes what is kept
    FusedLayer same(*other, rows, inputs, outputs);
    EXPECT_EQ(same.forward(), layer.forward());
    EXPECT_EQ(same.input_gradient(), layer.input_gradient());
    EXPECT_EQ(same.weight_gradient(true), layer.weight_gradient(true));
  }
  EXPECT_EQ(taken, (std::set{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                             CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB}));
}

// The trials of all back ends, and what each took: the agreement tests run them too, but see the results alone.
TEST(Fusions, AgreeWithTheReferenceInDoubleWhicheverIsTaken) {
  const auto reference = make_reference_backend(DType::kF64);
  std::map<std::string, std::set<cublasLtEpilogue_t>> taken;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const auto gpu = make_timed(dtype);
    for (const Operation& operation : timed_linear_operations()) {
      Random random(11);
      for (int i = 0; i < 60; ++i) {
        const Trial trial = operation.make(random);
        SCOPED_TRACE(operation.name + " " + trial.sizes);
        Outcome actual = execute(trial, *gpu, 0, dtype);
        const Outcome expected = execute(trial, *reference, 0, dtype);
        for (const auto& [epilogue, count] : epilogues_of([&] { actual = execute(trial, *gpu, 0, dtype); })) {
          taken[operation.name].insert(epilogue);
          EXPECT_EQ(count, 1U);
        }
        for (const Argument& argument : trial.arguments) {
          const Values &got = actual.values.at(argument.name), &wanted = expected.values.at(argument.name);
          double squares = 0;
          for (const double value : wanted) squares += value * value;
          const double rms = std::sqrt(squares / static_cast<double>(wanted.size()));
          for (std::size_t e = 0; e < got.size(); ++e) {
            const double allowed =
                allowed_error(argument.tolerance, wanted[e], rms, argument.dtype(dtype), dtype, true);
            ASSERT_LE(std::abs(got[e] - wanted[e]), allowed) << argument.name << ", element " << e;
          }
        }
      }
    }
  }
  EXPECT_EQ(taken["timed_linear_forward"], (std::set{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                                     CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}));
  EXPECT_EQ(taken["timed_linear_input_gradient"], (std::set{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DGELU}));
  EXPECT_EQ(taken["timed_linear_weight_gradient"], (std::set{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BGRADB}));
}

TEST(Fusions, AreTheUsualOnesForSmallProductsAndWithoutTiming) {
  for (const CudaOptions& options :
       {CudaOptions{.compute_dtype = DType::kBF16},
        CudaOptions{.compute_dtype = DType::kBF16, .gemm_timing = false, .gemm_timed_from = 0}}) {
    const auto gpu = make_cuda_backend(options);
    FusedLayer layer(*gpu, 16, 48, 48);
    EXPECT_EQ(layer.forward(), once(CUBLASLT_EPILOGUE_BIAS));
    EXPECT_EQ(layer.input_gradient(), once(CUBLASLT_EPILOGUE_DGELU));
    EXPECT_EQ(layer.weight_gradient(), once(CUBLASLT_EPILOGUE_DEFAULT));
  }
}

TEST(Fusions, AreNotTriedWhereTheLibraryLacksThem) {
  const auto gpu = make_timed();
  FusedLayer odd(*gpu, 17, 56, 56);
  odd.forward();
  EXPECT_EQ(odd.forward(), once(CUBLASLT_EPILOGUE_DEFAULT));
  odd.input_gradient();
  EXPECT_EQ(odd.input_gradient(), once(CUBLASLT_EPILOGUE_DEFAULT));
  // 16-bit rows must be of 8 elements; fp32 has a bias alone.
  FusedLayer uneven(*gpu, 16, 64, 50);
  uneven.forward();
  EXPECT_EQ(uneven.forward(), once(CUBLASLT_EPILOGUE_DEFAULT));
  const auto fp32 = make_timed(DType::kF32);
  FusedLayer layer(*fp32, 16, 64, 64);
  layer.forward();
  EXPECT_EQ(layer.forward(), once(CUBLASLT_EPILOGUE_BIAS));
  layer.weight_gradient();
  EXPECT_EQ(layer.weight_gradient(), once(CUBLASLT_EPILOGUE_DEFAULT));
}

TEST(Fusions, LeaveAnAccumulatedGradientUntilTheyAddToItOnce) {
  const auto gpu = make_timed();
  for (const std::int64_t rows : {14, 13}) {  // terms for which the library's is faster, and not
    FusedLayer layer(*gpu, rows, 80, 88);
    Values expected = layer.dbias();
    const Values sums = layer.sums_of_rows();
    for (int calls = 1; calls < 3; ++calls) {
      layer.weight_gradient(true);
      const Values actual = layer.dbias();
      for (std::size_t i = 0; i < sums.size(); ++i) {
        expected[i] += sums[i];
        // Sums of 14 normal values in fp32, in tensor cores that cut: far below the 1 by which two calls would differ.
        EXPECT_NEAR(actual[i], expected[i], 1e-4) << rows << " rows, call " << calls;
      }
    }
  }
}

// What a run takes says what is kept, even if it is not the fastest.
class KeptFusions : public ::testing::Test {
 protected:
  static Algorithm named(std::string_view name) {
    Algorithm way;
    std::ranges::transform(name, way.bytes.begin(), [](char letter) { return static_cast<std::byte>(letter); });
    return way;
  }
  // `passes`: FusibleOperation::passes().
  void keep(const MatrixProductKey& key, std::string_view name, std::string_view passes = {}) {
    cache_->settle(text(key, passes), named(name), kept(key, passes));
  }
  std::optional<Algorithm> kept(const MatrixProductKey& key, std::string_view passes = {}) const {
    return cache_->find(text(key, passes));
  }
  static std::string text(const MatrixProductKey& key, std::string_view passes) {
    return fmt::format("fusion{}: {}", passes, text_of(key));
  }

  const std::shared_ptr<AlgorithmCache> cache_ =
      algorithm_cache_of(make_timed()->processor() + ", driver 13000, cuBLASLt 130000");
};

TEST_F(KeptFusions, AreTakenAndOthersThanThisProgramKnowsAreNot) {
  const MatrixProductKey key{.c_dtype = DType::kF32,
                             .dtype = DType::kBF16,
                             .m = 72,
                             .n = 104,
                             .k = 16,
                             .transpose_a = true,
                             .a_alignment = 16,
                             .b_alignment = 16,
                             .c_alignment = 16,
                             .bias_gradient_alignment = 16};
  for (const std::string_view name : {"bias gradient", "nothing", "bias", "?"}) {
    keep(key, name);
    const auto gpu = make_timed();
    FusedLayer layer(*gpu, 16, 104, 72);
    layer.weight_gradient();
    EXPECT_EQ(layer.weight_gradient(), once(name == "nothing" ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BGRADB));
    EXPECT_EQ(kept(key) == named(name), name == "nothing" || name == "bias gradient");
  }
}

MatrixProductKey input_gradient_key(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
  return {.c_dtype = DType::kBF16,
          .dtype = DType::kBF16,
          .m = rows,
          .n = inputs,
          .k = outputs,
          .a_alignment = 16,
          .b_alignment = 16,
          .c_alignment = 16,
          .gelu_alignment = 16};
}
constexpr std::string_view kGeluMadeAgain = " with activation 1, made again", kGelu = " with activation 1";

// Sums of fp32 are twice the bytes of rounded ones; a product with GELU's derivative needs no pass for it.
TEST_F(KeptFusions, ReadSumsOrRoundedProductsByTheirTime) {
  for (const auto& [outputs, name] : {std::pair(std::int64_t{72}, "rounded"), {40, "nothing"}, {96, "gelu gradient"}}) {
    const auto gpu = make_timed();
    FusedLayer layer(*gpu, 10, 120, outputs);
    layer.input_gradient();
    const std::optional<Algorithm> chosen = kept(input_gradient_key(10, 120, outputs), kGeluMadeAgain);
    ASSERT_TRUE(chosen) << outputs;
    EXPECT_EQ(chosen->bytes, named(name).bytes) << outputs;
    EXPECT_FALSE(kept(input_gradient_key(10, 120, outputs), kGelu)) << "a call with fewer passes chooses for itself";
  }
}

TEST_F(KeptFusions, MultiplyTheProductAsItIsStoredByTheSlope) {
  constexpr std::int64_t kRows = 6, kInputs = 136, kOutputs = 24;
  const Shape inputs{kRows, kInputs};
  for (const Activation activation : {Activation::kGeluTanh, Activation::kSilu}) {
    const auto gpu = make_timed();
    const Tensor dy(*gpu, DType::kBF16, {kRows, kOutputs}), weight(*gpu, DType::kBF16, {kOutputs, kInputs}),
        u(*gpu, DType::kBF16, inputs), dx(*gpu, DType::kBF16, inputs), product(*gpu, DType::kBF16, inputs);
    std::uint64_t seed = 1;
    for (const Tensor* tensor : {&dy, &weight, &u}) gpu->fill_normal(tensor->ref(), {.seed = seed++}, 0, 1);
    LinearInputGradient call{.dx = product, .dy = dy, .weight = weight};
    gpu->linear_input_gradient(call);
    gpu->activation_backward({.dx = product, .dy = product, .x = u, .activation = activation});
    const Values expected = download_values(*gpu, product);
    for (const std::string_view name : {"rounded", "nothing"}) {
      MatrixProductKey key = input_gradient_key(kRows, kInputs, kOutputs);
      if (activation != Activation::kGeluTanh) key.gelu_alignment = 0;
      keep(key, name, fmt::format(" with activation {}", static_cast<int>(activation)));
      const auto other = make_timed();
      call.dx = dx;
      call.activation = activation;
      call.pre_activation = u;
      other->linear_input_gradient(call);
      EXPECT_EQ(download_values(*gpu, dx) == expected, name == "rounded");
    }
  }
}

// What GELU is applied to is not read from memory again.
TEST_F(KeptFusions, ApplyGeluBeforeRounding) {
  const MatrixProductKey key{.c_dtype = DType::kBF16,
                             .dtype = DType::kBF16,
                             .m = 24,
                             .n = 64,
                             .k = 72,
                             .transpose_b = true,
                             .a_alignment = 16,
                             .b_alignment = 16,
                             .c_alignment = 16,
                             .bias_alignment = 16,
                             .before_gelu_alignment = 16};
  Values y, activated;
  for (const std::string_view name : {"bias", "gelu"}) {
    keep(key, name);
    const auto gpu = make_timed();
    FusedLayer layer(*gpu, 24, 72, 64);
    layer.forward();
    EXPECT_EQ(layer.forward(), once(name == "gelu" ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_BIAS));
    if (name == "gelu") {
      EXPECT_EQ(layer.y(), y);
      EXPECT_NE(layer.activated(), activated);
    }
    y = layer.y();
    activated = layer.activated();
  }
}

}  // namespace
}  // namespace teratron::testing
