// Faults that are planted in what nvcc made of our kernels, one at a time, and must be seen: by a check of the
// interpreter, or in the numbers.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"
#include "emulated_gpu/ptx/decoder.h"
#include "emulated_gpu/ptx/mutations.h"
#include "ops/trials/agreement.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

using emulated::ptx::Edited;
const std::string kForward = "attend<teratron::Bf16, 128>(", kKeys = "add_key_gradients<teratron::Bf16, 128>(",
                  kSmallKeys = "add_key_gradients<teratron::Bf16, 64>(",
                  kQueries = "add_query_gradients<teratron::Bf16, 128>(";
const std::string kRace = "with no barrier between them", kCopy = "before the copy was waited for",
                  kMisaligned = "misaligned address", kOutside = "outside every allocation";

std::vector<Mutation> all_mutations() {
  return {
      // Barriers.
      {"ForwardWithoutItsBarrier", kForward, "bar.sync", 0, removed, kRace},
      {"KeysWithoutTheFirstBarrier", kSmallKeys, "bar.sync", 0, removed, kRace, "small_matrix_attention"},
      {"KeysWithoutTheSecondBarrier", kKeys, "bar.sync", 1, removed, kRace},
      {"KeysWithoutTheThirdBarrier", kKeys, "bar.sync", 2, removed, kRace},
      {"KeysWithoutTheFourthBarrier", kKeys, "bar.sync", 3, removed, kRace},
      {"QueriesWithoutTheirBarrier", kQueries, "bar.sync", 0, removed, kRace},
      {"BarrierOfAWarpAlone", kKeys, "bar.sync", 2, replaced("bar.sync \t0", "bar.warp.sync \t-1"), kRace},
      {"BarrierOfHalfTheLanes", kForward, "bar.sync", 0, by_half_the_lanes, kRace},
      {"ReductionWithoutItsFirstBarrier", "normalise_any<teratron::Bf16>", "bar.sync", 2, removed, kRace,
       "norm_forward"},
      {"ReductionWithoutItsSecondBarrier", "normalise_any<teratron::Bf16>", "bar.sync", 1, removed, kRace,
       "norm_forward"},
      {"SortWithoutABarrier", "sort_rows", "bar.sync", 1, removed, kRace, "embedding_backward"},
      // Asynchronous copies.
      {"ForwardThatDoesNotWait", kForward, "cp.async.wait_group", 0, removed, kCopy},
      {"ForwardThatWaitsForAllButOne", kForward, "cp.async.wait_group", 0, replaced("0;", "1;"), kCopy},
      {"QueriesThatWaitForAllButOne", kQueries, "cp.async.wait_group", 0, replaced("0;", "1;"), kCopy},
      {"KeysThatDoNotCommit", kKeys, "cp.async.commit_group", 1, removed, kCopy},
      {"CopiesOfHalfARow", kForward, "cp.async.cg", kAll, with_last_operand("8"), ""},
      {"CopiesFromFourBytesOn", kForward, "cp.async.cg", 0, replaced("], 16", "+4], 16"), kMisaligned},
      // Matrices.
      {"ForwardThatDoesNotTranspose", kForward, ".trans.shared", kAll, replaced(".trans", ""), ""},
      {"KeysThatTransposeOnce", kKeys, "m8n8.x4.shared", 0, replaced(".x4", ".x4.trans"), ""},
      {"PairsTheOtherWayRound", kForward, "cvt.rn.bf16x2", 0, swapped(1, 2), ""},
      {"ProductsOfAnotherType", kForward, "f32.bf16.bf16", 0, replaced("bf16.bf16", "f16.f16"), ""},
      {"ProductOfHalfTheLanes", kForward, "mma.sync", 0, by_half_the_lanes, "that never come"},
      {"MatricesFromFourBytesOn", kForward, "ldmatrix", 0, moved_by_4, kMisaligned},
      // Shuffles.
      {"ShuffleOfHalfTheLanes", kForward, "shfl.sync", 0, by_half_the_lanes, "that never come"},
      {"ShuffleWithAMaskOfOneLane", kForward, "shfl.sync.bfly", 0, with_last_operand("1"), "its mask of lanes"},
      // Addresses and bounds.
      {"SumsFromFourBytesOn", "add_bias<float>", "st.global", 0, moved_by_4, "", "linear_forward", DType::kF32},
      {"VectorsFromFourBytesOn", "add_branch<teratron::Bf16, 8>", "ld.global.v4", 0, moved_by_4, kMisaligned,
       "residual_add"},
      {"ParametersFromFourBytesOn", "softmax_partials<float, 1>", "ld.param.u64", 0, moved_by_4, "",
       "cross_entropy_partials", DType::kF32},
      {"OneRowTooMany", "add_bias<float>", "setp.ge.s64", kAll, replaced(".ge.", ".gt."), "", "linear_forward",
       DType::kF32},
      {"PredicateNegated", kKeys, "@%p", 0, replaced("@%p", "@!%p"), ""},
      {"TilesInLessMemory", "attend<float, 64, false>(", ".shared .align 16", 0, replaced("[36624]", "[20000]"),
       "of which the block has", "attention_forward", DType::kF32},
      // Arithmetic.
      {"DivisorZero", kForward, "div.s32", 0, put_after(" div.s32 %r0, 1, 0;"), "divides an integer by zero"},
      {"ProductThatIsASum", kQueries, "mul.f32", 3, replaced("mul", "add"), ""},
      {"ChoiceTheOtherWayRound", kForward, "selp.f32", kAll, swapped(1, 2), ""},
      {"LoopWithoutEnd", kKeys, "bar.sync", 0, put_before("$forever: bra.uni $forever; "), "does not end"},
  };
}

class PtxFaults : public PtxKernels {
 protected:
  static Trial trial_of(const std::string& operation, Random& random) {
    if (operation.ends_with("matrix_attention")) {
      const std::int64_t head_size = operation.starts_with("small") ? 64 : 128;
      return matrix_attention_trial(random, {.head_size = head_size, .context = true, .dropout = true});
    }
    for (const Operation& known : operations()) {
      if (known.name == operation) return known.make(random);
    }
    throw InternalError(fmt::format("there is an operation {}", operation));
  }

  // The fault of the first trial that has one; empty if all are right.
  static std::string evidence(const std::string& operation, DType dtype) {
    const auto gpu = make_cuda_backend({.compute_dtype = dtype}), reference = make_reference_backend(DType::kF64);
    Random random(1);
    const int trials = operation.ends_with("matrix_attention") ? 1 : 12;
    for (int i = 0; i < trials; ++i) {
      const Trial trial = trial_of(operation, random);
      const std::int64_t offset = i % 2 == 0 ? 0 : random.below(20);
      try {
        const Outcome actual = execute(trial, *gpu, offset, dtype), expected = execute(trial, *reference, 0, dtype);
        std::string found = disagreement(trial, actual, expected, dtype, dtype != DType::kF32);
        if (!found.empty()) return found;
      } catch (const InternalError& error) {
        return error.what();
      }
    }
    return "";
  }
};

class PtxMutations : public PtxFaults, public ::testing::WithParamInterface<Mutation> {};

TEST_P(PtxMutations, IsSeen) {
  const Mutation& mutation = GetParam();
  const Edited edited(mutation.kernel, [&](const std::string& body) { return mutated(body, mutation); });
  ASSERT_GE(edited.kernels(), 1) << "nothing was changed: is there still such a kernel, such a line?";
  const std::string found = evidence(mutation.operation, mutation.dtype);
  RecordProperty("found", found);
  EXPECT_NE(found, "");
  EXPECT_THAT(found, ::testing::HasSubstr(mutation.seen));
}

INSTANTIATE_TEST_SUITE_P(Every, PtxMutations, ::testing::ValuesIn(all_mutations()),
                         [](const auto& tested) { return tested.param.name; });

// Those, too, that no test runs: an instruction that nvcc has not written before is named.
TEST_F(PtxKernels, AreAllDecoded) {
  int kernels = 0;
  for (const auto& file : std::filesystem::directory_iterator(TERATRON_PTX_FOLDER)) {
    if (file.path().extension() != ".ptx") continue;
    std::ifstream in(file.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    for (const emulated::ptx::KernelText& kernel : emulated::ptx::kernels_of(text, file.path().filename())) {
      EXPECT_NO_THROW(emulated::ptx::decode(kernel)) << kernel.name;
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 100);
}

TEST_F(PtxFaults, AreNotThereBeforeTheyArePlanted) {
  std::set<std::pair<std::string, DType>> tried;
  for (const Mutation& mutation : all_mutations()) {
    if (!tried.emplace(mutation.operation, mutation.dtype).second) continue;
    EXPECT_EQ(evidence(mutation.operation, mutation.dtype), "") << mutation.operation;
  }
}

}  // namespace
}  // namespace teratron::testing
