// Faults planted in attention for Hopper: in what it starts and waits for, and in what its descriptors say.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "emulated_gpu/ptx/mutations.h"
#include "ops/trials/agreement.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

using emulated::ptx::Edited;

// Trials: several tiles, or padding as NaN; of the forward pass alone, or of both.
const std::string kTiles = "tiles", kPadding = "padding", kGradientTiles = "tiles of gradients",
                  kGradientPadding = "padding of gradients";

// Plants faults in one kernel, whose trial is another where they are of padding.
struct Planter {
  std::string prefix, kernel, tiles;

  Mutation operator()(const std::string& name, const std::string& line, int which, Change change,
                      const std::string& seen, const std::string& trial = "") const {
    return {prefix + name, kernel + "<teratron::Bf16, 64>(", line, which, std::move(change),
            seen,          trial.empty() ? tiles : trial};
  }
};

std::string arrival_alone(std::string line) {
  line = replaced("arrive.expect_tx", "arrive")(std::move(line));
  return line.replace(line.rfind(','), std::string::npos, ";");
}

// Changes a product, whose operands are `{sums}, first, second, %adds, ..`.
std::string descriptors_swapped(std::string line) {
  const std::size_t begin = line.find("}, ") + 3, comma = line.find(", ", begin), end = line.find(", %adds", comma);
  const std::string first = line.substr(begin, comma - begin), second = line.substr(comma + 2, end - comma - 2);
  return line.replace(begin, end - begin, second + ", " + first);
}

// Changes a descriptor that is put together: its two highest bits are the swizzle.
std::string without_swizzle(std::string line) {
  const std::size_t begin = line.rfind(' ') + 1;
  const std::uint64_t bits = std::stoull(line.substr(begin)) & ~std::uint64_t{0} >> 2;
  return line.replace(begin, std::string::npos, fmt::format("{};", bits));
}

// Changes a copy, whose coordinates are `{column, head, row, batch}`.
std::string column_and_row_swapped(std::string line) {
  const std::size_t begin = line.find('{') + 1, end = line.find('}', begin);
  std::vector<std::string> parts(1);
  for (const char c : line.substr(begin, end - begin)) {
    c == ',' ? static_cast<void>(parts.emplace_back()) : parts.back().push_back(c);
  }
  std::swap(parts.at(0), parts.at(2));
  return line.replace(begin, end - begin, fmt::format("{}, {}, {}, {}", parts[0], parts[1], parts[2], parts.at(3)));
}

// Parts of the messages by which faults are found.
const std::string kUnderWay = "to which a bulk copy is under way", kHangs = "waits, as all others do, for ",
                  kNotWaitedFor = "whose mbarrier it did not wait for", kMayRead = "is not known to be done",
                  kRegister = "a register to which a product (wgmma) adds", kUnfenced = "without wgmma.fence",
                  kProxy = "without fence.proxy.async", kRace = "with no barrier between them", kNumbers;

// Places of mbarrier.try_wait in the kernel's text.
enum Wait { kFreeKeys, kFreeValues, kQueries, kFirstKeys, kKeys, kValues, kLastValues };

std::vector<Mutation> forward_mutations() {
  const Planter planted{"", "attend_by_warpgroups", kTiles};
  return {
      // mbarriers.
      planted("ExpectsNoBytesOfKeys", "arrive.expect_tx", 1, arrival_alone, kNotWaitedFor),
      planted("ExpectsNoBytesOfValues", "arrive.expect_tx", 2, arrival_alone, kNotWaitedFor),
      planted("ExpectsAThousandBytes", "arrive.expect_tx", 1, with_last_operand("1000"), kHangs),
      planted("WaitsForQueriesOfAnotherPhase", "try_wait", kQueries, with_last_operand("1"), kNotWaitedFor),
      planted("WaitsForKeysOfEvenPhases", "try_wait", kKeys, with_last_operand("0"), kUnderWay),
      planted("WaitsForKeysOfOddPhases", "try_wait", kKeys, with_last_operand("1"), kHangs),
      planted("WaitsForValuesOfEvenPhases", "try_wait", kValues, with_last_operand("0"), kUnderWay),
      planted("WaitsForTheLastValuesOfAnotherPhase", "try_wait", kLastValues, with_last_operand("1"), kHangs),
      planted("CopiesKeysThatAreNotFree", "try_wait", kFreeKeys, with_last_operand("1"), "once too often"),
      planted("CopiesValuesThatAreNotFree", "try_wait", kFreeValues, with_last_operand("1"), kNotWaitedFor),
      planted("NeverFreesValues", "mbarrier.arrive.shared", 2, removed, kHangs),
      planted("FreesKeysBeforeTheLastWarpHasReadThem", "mbarrier.init", 3, with_last_operand("7"), kMayRead),
      planted("MakesNoMbarrierForQueries", "mbarrier.init", 0, removed, "there is no mbarrier"),
      planted("DoesNotShowMbarriersToCopies", "fence.proxy.async", 0, removed, kProxy),
      planted("UsesMbarriersThatAnotherThreadMakes", "bar.sync \t0", 0, removed, kRace),
      // Products.
      planted("FirstScoresWithoutAFence", "wgmma.fence", 0, removed, kUnfenced),
      planted("ScoresWithoutAFence", "wgmma.fence", 1, removed, kUnfenced),
      planted("LastValuesWithoutAFence", "wgmma.fence", 3, removed, kUnfenced),
      planted("DoesNotWaitForScores", "wgmma.wait_group", 1, removed, kRegister),
      planted("WaitsForTheGroupBeforeScores", "wgmma.wait_group", 1, replaced("aligned 1", "aligned 2"), kRegister),
      planted("DoesNotWaitForValues", "wgmma.wait_group", 2, removed, kRegister),
      planted("DoesNotCommitScores", "wgmma.commit_group", 1, removed, kRegister),
      planted("DescriptorsTheOtherWayRound", "m64n128k16", kAll, descriptors_swapped, ""),
      planted("ValuesThatAreNotTransposed", "m64n64k16", kAll, replaced("1, 1, 1;", "1, 1, 0;"), ""),
      planted("ProductsOfAnotherType", "m64n64k16", 0, replaced("bf16.bf16", "f16.f16"), ""),
      planted("KeysWithoutASwizzle", ", 46116862", 3, without_swizzle, ""),
      planted("ProductsOfHalfTheLanes", "wgmma.fence", 1, by_half_the_lanes, "that never come"),
      // Turns, registers, padding.
      planted("NeverGivesTheTurn", "bar.arrive", 1, removed, kHangs),
      planted("TurnsOfOneWarpgroup", "bar.sync %r", 0, replaced("256", "128"), "at which others are 256"),
      planted("TakesRegistersThatNobodyGaveBack", "setmaxnreg.dec", 0, removed, kHangs),
      planted("PaddingThatIsNotShown", "fence.proxy.async", 1, removed, kProxy, kPadding),
      planted("PaddingThatIsStillCleared", "bar.sync %r", 1, removed, kMayRead, kPadding),
      // Copies.
      planted("CopiesFromAnotherPlace", "cp.async.bulk", 2, column_and_row_swapped, ""),
      planted("CopiesElsewhere", "cp.async.bulk", 2, replaced("], [%rd", "+64], [%rd"), "a misaligned address"),
  };
}

// Places of mbarrier.try_wait in the backward kernels' texts.
enum KeyWait { kOwnKeys, kQueryTile, kFreeQueryTile };
enum QueryWait { kFreeKeyTile, kOwnQueries, kKeyTile };

std::vector<Mutation> key_mutations() {
  const Planter planted{"Keys", "add_key_gradients_by_warpgroups", kGradientTiles};
  return {
      planted("ExpectNoBytesOfATile", "arrive.expect_tx", 1, arrival_alone, kNotWaitedFor),
      planted("ExpectAThousandBytes", "arrive.expect_tx", 1, with_last_operand("1000"), kHangs),
      planted("AreWaitedForInAnotherPhase", "try_wait", kOwnKeys, with_last_operand("1"), kNotWaitedFor),
      planted("WaitForTilesOfEvenPhases", "try_wait", kQueryTile, with_last_operand("0"), kHangs),
      planted("WaitForTilesOfOddPhases", "try_wait", kQueryTile, with_last_operand("1"), kHangs),
      planted("CopyTilesThatAreNotFree", "try_wait", kFreeQueryTile, with_last_operand("1"), "once too often"),
      planted("NeverFreeTilesThatTheyDoNotSee", "mbarrier.arrive.shared", 0, removed, kHangs),
      planted("NeverFreeTiles", "mbarrier.arrive.shared", 1, removed, kHangs),
      planted("FreeTilesBeforeTheLastWarpHasReadThem", "mbarrier.init", 2, with_last_operand("7"), kRace),
      planted("MakeNoMbarrierForTheirOwnRows", "mbarrier.init", 0, removed, "there is no mbarrier"),
      planted("DoNotShowMbarriersToCopies", "fence.proxy.async", 0, removed, kProxy),
      planted("UseMbarriersThatAnotherThreadMakes", "bar.sync \t0", 0, removed, kRace),
      planted("FreeTilesThatOtherLanesRead", "bar.warp.sync", 1, removed, kRace),
      planted("GiveStatisticsThatOtherLanesStore", "bar.warp.sync", 2, removed, kRace),
      planted("PlaceStatisticsElsewhere", "st.shared.f32", 0, moved_by_4, ""),
      planted("ScoresWithoutAFence", "wgmma.fence", 0, removed, kUnfenced),
      planted("ValuesWithoutAFence", "wgmma.fence", 2, removed, kUnfenced),
      planted("KeysWithoutAFence", "wgmma.fence", 3, removed, kUnfenced),
      planted("DoNotWaitForTheTileBefore", "wgmma.wait_group", 0, removed, kMayRead),
      planted("DoNotWaitForScores", "wgmma.wait_group", 1, replaced("aligned 1", "aligned 2"), kRegister),
      planted("DoNotWaitForGradientsOfWeights", "wgmma.wait_group", 2, removed, kRegister),
      planted("DoNotWaitForTheLastTile", "wgmma.wait_group", 3, removed, kRegister),
      planted("DoNotCommitScores", "wgmma.commit_group", 0, removed, kRegister),
      planted("DescriptorsTheOtherWayRound", "1, 1, 0, 0;", kAll, descriptors_swapped, kNumbers),
      planted("QueriesThatAreNotTransposed", "%adds, 1, 1, 1;", kAll, replaced("1, 1, 1;", "1, 1, 0;"), kNumbers),
      planted("ProductsOfAnotherType", "%adds, 1, 1, 1;", 0, replaced("bf16.bf16", "f16.f16"), kNumbers),
      planted("TilesWithoutASwizzle", ", 46116862", 1, without_swizzle, kNumbers),
      planted("TakeRegistersThatNobodyGaveBack", "setmaxnreg.dec", 0, removed, kHangs),
      planted("PaddingThatIsNotShown", "fence.proxy.async", 1, removed, kProxy, kGradientPadding),
      planted("PaddingThatIsStillCleared", "bar.sync %r", 0, removed, kMayRead, kGradientPadding),
      planted("CopiesFromAnotherPlace", "cp.async.bulk", 4, column_and_row_swapped, kNumbers),
  };
}

std::vector<Mutation> query_mutations() {
  const Planter planted{"Queries", "add_query_gradients_by_warpgroups", kGradientTiles};
  return {
      planted("ExpectNoBytesOfATile", "arrive.expect_tx", 1, arrival_alone, kUnderWay),
      planted("AreWaitedForInAnotherPhase", "try_wait", kOwnQueries, with_last_operand("1"), kNotWaitedFor),
      planted("WaitForTilesOfEvenPhases", "try_wait", kKeyTile, with_last_operand("0"), kMayRead),
      planted("CopyTilesThatAreNotFree", "try_wait", kFreeKeyTile, with_last_operand("1"), "once too often"),
      planted("NeverFreeTiles", "mbarrier.arrive.shared", 0, removed, kHangs),
      planted("FreeTilesBeforeTheLastWarpHasReadThem", "mbarrier.init", 2, with_last_operand("7"), kMayRead),
      planted("DoNotShowMbarriersToCopies", "fence.proxy.async", 0, removed, kProxy),
      planted("ScoresWithoutAFence", "wgmma.fence", 0, removed, kUnfenced),
      planted("GradientsWithoutAFence", "wgmma.fence", 2, removed, kUnfenced),
      planted("DoNotWaitForTheTileBefore", "wgmma.wait_group", 0, removed, kMayRead),
      planted("DoNotWaitForScores", "wgmma.wait_group", 1, removed, kRegister),
      planted("DoNotWaitForGradientsOfWeights", "wgmma.wait_group", 2, replaced("aligned 0", "aligned 1"), kRegister),
      planted("DoNotWaitForTheLastTile", "wgmma.wait_group", 3, removed, kRegister),
      planted("DoNotCommitScores", "wgmma.commit_group", 0, removed, kRegister),
      planted("DescriptorsTheOtherWayRound", "m64n128k16", kAll, descriptors_swapped, kNumbers),
      planted("KeysThatAreNotTransposed", "m64n64k16", kAll, replaced("1, 1, 1;", "1, 1, 0;"), kNumbers),
      planted("KeysWithoutASwizzle", ", 46116862", 3, without_swizzle, kNumbers),
      planted("PaddingThatIsNotShown", "fence.proxy.async", 1, removed, kProxy, kGradientPadding),
      planted("PaddingThatIsStillCleared", "bar.sync %r", 0, removed, kMayRead, kGradientPadding),
      planted("CopiesFromAnotherPlace", "cp.async.bulk", 4, column_and_row_swapped, kNumbers),
  };
}

std::vector<Mutation> all_mutations() {
  std::vector<Mutation> all = forward_mutations();
  for (const std::vector<Mutation>& more : {key_mutations(), query_mutations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class PtxHopperFaults : public PtxKernels {
 protected:
  // The fault of the trial; empty if there is none.
  static std::string evidence(const std::string& asked) {
    const auto gpu = make_cuda_backend({.compute_dtype = DType::kBF16, .hopper_attention = KernelUse::kRequired});
    const auto reference = make_reference_backend(DType::kF64);
    Random random(1);
    const bool backward = asked == kGradientTiles || asked == kGradientPadding;
    const bool tiles = asked == kTiles || asked == kGradientTiles;
    const Trial trial = tiles ? hopper_tiles_trial(random, backward) : hopper_padding_trial(random, backward);
    try {
      const Outcome actual = execute(trial, *gpu, 0, DType::kBF16),
                    expected = execute(trial, *reference, 0, DType::kBF16);
      return disagreement(trial, actual, expected, DType::kBF16, true);
    } catch (const InternalError& error) {
      return error.what();
    }
  }
};

class PtxHopperMutations : public PtxHopperFaults, public ::testing::WithParamInterface<Mutation> {};

TEST_P(PtxHopperMutations, IsSeen) {
  const Mutation& mutation = GetParam();
  const Edited edited(mutation.kernel, [&](const std::string& body) { return mutated(body, mutation); });
  ASSERT_GE(edited.kernels(), 1) << "nothing was changed: is there still such a kernel, such a line?";
  const std::string found = evidence(mutation.operation);
  RecordProperty("found", found);
  EXPECT_NE(found, "");
  EXPECT_THAT(found, ::testing::HasSubstr(mutation.seen));
}

INSTANTIATE_TEST_SUITE_P(Every, PtxHopperMutations, ::testing::ValuesIn(all_mutations()),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(PtxHopperFaults, AreNotThereBeforeTheyArePlanted) {
  for (const std::string& trial : {kTiles, kPadding, kGradientTiles, kGradientPadding}) {
    EXPECT_EQ(evidence(trial), "") << trial;
  }
}

}  // namespace
}  // namespace teratron::testing
