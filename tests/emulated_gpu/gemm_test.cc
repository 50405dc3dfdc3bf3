// Products of the CUDA back end on the emulated cuBLASLt: which algorithm does them, how often, and that timing leaves
// every result as it would have been.
#include "ops/cuda/linear/gemm.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/philox.h"
#include "base/temporary_folder.h"
#include "ops/algorithms/algorithm_cache.h"
#include "ops/backend.h"

namespace teratron::testing {
namespace {

using namespace cuda;
using emulated::products_by;

constexpr std::int64_t kM = 24, kN = 16, kK = 40;

// Each test has a device of its own name, since the choices of a device are kept for the whole process.
class Gemms : public ::testing::Test {
 protected:
  Gemms() : device_(::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    RandomSequence random(RandomStream{.seed = 3});
    for (std::vector<float>* values : {&a_, &b_, &c_, &bias_}) {
      for (float& value : *values) value = static_cast<float>(2 * random.uniform() - 1);
    }
  }
  ~Gemms() override { unsetenv("XDG_CACHE_HOME"); }

  Gemm make(const GemmOptions& options = {.timed_from = 0}) const {
    GemmOptions named = options;
    named.device = device_;
    return {nullptr, named};
  }
  std::string machine() const { return device_ + ", driver 13000, cuBLASLt 130000"; }
  std::filesystem::path file() const { return folder_ / ("teratron/algorithms/" + checksum_of(machine()) + ".json"); }

  static TensorRef view(std::vector<float>& values, const Shape& shape) { return {values.data(), DType::kF32, shape}; }
  // Always at the same places, whose alignment counts.
  Product product() { return {.c = view(result_, {kM, kN}), .a = view(a_, {kM, kK}), .b = view(b_, {kK, kN})}; }
  // What a product makes of c_.
  std::vector<float> result(Gemm& gemm, const Product& of) {
    result_ = c_;
    if (of.bias) {
      EXPECT_TRUE(gemm.try_fused(of));
    } else {
      gemm.multiply(of);
    }
    return result_;
  }
  std::vector<float> result(Gemm& gemm) { return result(gemm, product()); }
  Product added() {
    Product of = product();
    of.accumulate = true;
    return of;
  }
  Product biased() {
    Product of = product();
    of.bias = view(bias_, {kN});
    return of;
  }

  // By definition, from the first term to the last or the other way round.
  std::vector<float> expected(bool from_first, bool accumulate = false, const std::vector<float>& bias = {}) const {
    std::vector<float> c = c_;
    for (std::int64_t m = 0; m < kM; ++m) {
      for (std::int64_t n = 0; n < kN; ++n) {
        const auto at = static_cast<std::size_t>(m * kN + n);
        float sum = accumulate ? c_[at] : 0;
        for (std::int64_t i = 0; i < kK; ++i) {
          const std::int64_t k = from_first ? i : kK - 1 - i;
          sum += a_[static_cast<std::size_t>(m * kK + k)] * b_[static_cast<std::size_t>(k * kN + n)];
        }
        c[at] = bias.empty() ? sum : sum + bias[static_cast<std::size_t>(n)];
      }
    }
    return c;
  }

  const TemporaryFolder folder_;
  const std::string device_;
  std::vector<float> a_ = std::vector<float>(kM * kK), b_ = std::vector<float>(kK * kN),
                     c_ = std::vector<float>(kM * kN), bias_ = std::vector<float>(kN), result_ = c_;
};

TEST_F(Gemms, AreDoneByTheFastestAlgorithmThatRunsAndRepeats) {
  ASSERT_NE(expected(true), expected(false)) << "nothing tells the algorithms apart";
  Gemm gemm = make();
  EXPECT_EQ(result(gemm), expected(false));
  const std::uint64_t tried = products_by(emulated::kSlow), unrepeatable = products_by(emulated::kUnrepeatable);
  EXPECT_GT(tried, 0U);
  EXPECT_EQ(unrepeatable, 0U);
}

TEST_F(Gemms, LeaveWhatTheyAreAddedToAsItWasUntilTheyAreAddedOnce) {
  Gemm gemm = make();
  EXPECT_EQ(result(gemm, added()), expected(false, true));
  EXPECT_EQ(result(gemm, added()), expected(false, true));  // now that nothing is timed
}

// A bias in the last row of c is read before it is overwritten, once.
TEST_F(Gemms, DoNotSpoilAnInputThatLiesWhereTheyWrite) {
  Gemm gemm = make();
  EXPECT_EQ(result(gemm, biased()), expected(false, false, bias_));
  Product inside = product();
  inside.bias = view(result_, {kM, kN}).select(0, kM - 1);
  EXPECT_EQ(result(gemm, inside), expected(false, false, std::vector<float>(c_.end() - kN, c_.end())));
}

// A weight gradient: few results of many terms, added to what is there.
class SplitGemms : public Gemms {
 protected:
  static constexpr std::int64_t kTerms = 1024;

  SplitGemms() {
    RandomSequence random(RandomStream{.seed = 5});
    for (std::vector<float>* values : {&long_a_, &long_b_}) {
      for (float& value : *values) value = static_cast<float>(2 * random.uniform() - 1);
    }
  }
  Product gradient(std::int64_t terms = kTerms) {
    return {.c = view(result_, {kM, kN}),
            .a = view(long_a_, {terms, kM}),
            .b = view(long_b_, {terms, kN}),
            .transpose_a = true,
            .accumulate = true};
  }
  // In parts of the terms, each added up from its first to its last one, in order.
  std::vector<float> expected_in_parts(std::int64_t parts) const {
    std::vector<float> c = c_;
    for (std::int64_t at = 0; at < kM * kN; ++at) {
      float sum = c_[static_cast<std::size_t>(at)];
      for (std::int64_t part = 0; part < parts; ++part) {
        float of_part = 0;
        for (std::int64_t k = kTerms * part / parts; k < kTerms * (part + 1) / parts; ++k) {
          of_part +=
              long_a_[static_cast<std::size_t>(k * kM + at / kN)] * long_b_[static_cast<std::size_t>(k * kN + at % kN)];
        }
        sum += of_part;
      }
      c[static_cast<std::size_t>(at)] = sum;
    }
    return c;
  }

 private:
  std::vector<float> long_a_ = std::vector<float>(kTerms * kM), long_b_ = std::vector<float>(kTerms * kN);
};

TEST_F(SplitGemms, AreDoneInTheFastestNumberOfPartsInEveryRun) {
  Gemm gemm = make();
  EXPECT_EQ(result(gemm, gradient()), expected_in_parts(emulated::kBestParts));
  Gemm later = make();
  const std::uint64_t tried = products_by(emulated::kSplitting);
  EXPECT_EQ(result(later, gradient()), expected_in_parts(emulated::kBestParts));
  EXPECT_EQ(products_by(emulated::kSplitting), tried + 1) << "which takes what is kept";
}

TEST_F(SplitGemms, AreNotTriedForFewTermsOrManyResultsNorWithoutTiming) {
  std::vector<float> many(96 * 64), rows(1024 * 96), columns(1024 * 64);
  Product wide{
      .c = view(many, {96, 64}), .a = view(rows, {1024, 96}), .b = view(columns, {1024, 64}), .transpose_a = true};
  Gemm gemm = make(), untimed = make({.timing = false});
  const std::uint64_t before = emulated::split_checks();
  result(gemm, gradient(kTerms - 8));
  gemm.multiply(wide);
  result(untimed, gradient());
  EXPECT_EQ(emulated::split_checks(), before);
}

TEST_F(Gemms, AreTimedOnceForAllThatFollow) {
  Gemm first = make();
  const std::vector<float> made = result(first);
  const std::uint64_t before = products_by(emulated::kFast), others = products_by(emulated::kSlow);
  EXPECT_EQ(result(first), made);
  Gemm second = make();
  EXPECT_EQ(result(second), made);
  EXPECT_EQ(products_by(emulated::kFast), before + 2);
  EXPECT_EQ(products_by(emulated::kSlow), others);
  const std::optional<Algorithms> kept = algorithms_from_text(read_file(file()), machine());
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), 1U);
  EXPECT_EQ(static_cast<std::uint64_t>(kept->begin()->second.bytes[0]), emulated::kFast);
  EXPECT_NEAR(kept->begin()->second.microseconds, 4, 1e-3);
}

TEST_F(Gemms, AreChosenAnewForOtherKinds) {
  Gemm gemm = make(), tf32 = make({.tf32 = true, .timed_from = 0});
  Product transposed = product();  // of the same memory, as other matrices
  transposed.a = view(a_, {kK, kM});
  transposed.transpose_a = true;
  for (const Product& of : {product(), added(), biased(), transposed}) result(gemm, of);
  result(tf32);
  EXPECT_EQ(algorithms_from_text(read_file(file()), machine()).value().size(), 5U);
}

TEST_F(Gemms, ThatAreSmallOrOfARunWithoutTimingAreTheLibrarysFirst) {
  for (const GemmOptions& options : {GemmOptions{}, GemmOptions{.timing = false, .timed_from = 0}}) {
    Gemm gemm = make(options);
    const std::uint64_t before = products_by(emulated::kUsual), others = products_by(emulated::kFast);
    EXPECT_EQ(result(gemm), expected(true));
    EXPECT_EQ(products_by(emulated::kUsual), before + 1);
    EXPECT_EQ(products_by(emulated::kFast), others);
    EXPECT_FALSE(std::filesystem::exists(file()));
  }
}

TEST_F(Gemms, FollowTheOptionsOfABackEnd) {
  EXPECT_EQ(make_cuda_backend()->settings(), "");
  EXPECT_EQ(make_cuda_backend({.tf32 = true})->settings(), "tf32");
  EXPECT_EQ(make_cuda_backend({.tf32 = true, .gemm_timing = false})->settings(), "tf32, gemm timing off");
}

// A library need not say that it lacks an epilogue in so many words, nor before the product starts.
TEST_F(Gemms, WithAnEpilogueThatIsRefusedInAnyWordsAreNotDone) {
  for (const emulated::Refuses refuses : {emulated::Refuses::kChoices, emulated::Refuses::kStarts}) {
    for (const cublasStatus_t status :
         {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH}) {
      Gemm gemm = make({.timing = false});
      emulated::refuse_epilogues(refuses, status);
      EXPECT_FALSE(gemm.try_fused(biased()));
      emulated::refuse_epilogues(emulated::Refuses::kNothing);
      EXPECT_FALSE(gemm.can_fuse(biased())) << "nor asked for again";
      EXPECT_EQ(result(gemm), expected(true));
    }
  }
  Gemm gemm = make({.timing = false});
  emulated::refuse_epilogues(emulated::Refuses::kStarts, CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_THROW(static_cast<void>(gemm.try_fused(biased())), EnvironmentError) << "which is a failure of the device";
  emulated::refuse_epilogues(emulated::Refuses::kNothing);
}

// A small layer's bias is the library's unless it refuses.
TEST_F(Gemms, OfALayerWhoseEpilogueIsRefusedAreDoneWithoutIt) {
  const auto gpu = make_cuda_backend({.gemm_timing = false});
  const Tensor x(*gpu, DType::kF32, {8, 16}), weight(*gpu, DType::kF32, {24, 16}), bias(*gpu, DType::kF32, {24}),
      y(*gpu, DType::kF32, {8, 24});
  for (const Tensor* const tensor : {&x, &weight, &bias}) gpu->fill_normal(tensor->ref(), {.seed = 1}, 0, 1);
  const auto forward = [&] {
    gpu->linear_forward({.y = y.ref(), .x = x.ref(), .weight = weight.ref(), .bias = bias.ref()});
    std::vector<float> values(8 * 24);
    gpu->download(values.data(), y.ref());
    return values;
  };
  emulated::refuse_epilogues(emulated::Refuses::kStarts, CUBLAS_STATUS_INVALID_VALUE);
  const std::vector<float> plain = forward();
  emulated::refuse_epilogues(emulated::Refuses::kNothing);
  EXPECT_EQ(plain, forward());
}

// What is kept says which one a run takes, even if it is not the fastest.
class KeptGemms : public Gemms {
 protected:
  void keep(std::uint64_t number, std::uint64_t scheme) {
    Algorithm kept;
    kept.bytes[0] = static_cast<std::byte>(number);
    kept.bytes[8] = static_cast<std::byte>(scheme);
    algorithm_cache_of(machine())->settle(text_of(key_of(product(), false)), kept);
  }
};

TEST_F(KeptGemms, TakeWhatIsKept) {
  keep(emulated::kUsual, CUBLASLT_REDUCTION_SCHEME_NONE);
  Gemm gemm = make();
  EXPECT_EQ(result(gemm), expected(true));
}

TEST_F(KeptGemms, DoNotTakeWhatTheLibraryRefuses) {
  keep(emulated::kBlasAlgorithms, CUBLASLT_REDUCTION_SCHEME_NONE);
  Gemm gemm = make();
  EXPECT_EQ(result(gemm), expected(false));
}

TEST_F(KeptGemms, DoNotTakeWhatDoesNotRepeat) {
  keep(emulated::kUnrepeatable, CUBLASLT_REDUCTION_SCHEME_INPLACE);
  Gemm gemm = make();
  const std::uint64_t before = products_by(emulated::kUnrepeatable);
  EXPECT_EQ(result(gemm), expected(false));
  EXPECT_EQ(products_by(emulated::kUnrepeatable), before);
}

}  // namespace
}  // namespace teratron::testing
