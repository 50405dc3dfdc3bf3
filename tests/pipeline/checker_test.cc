// The checker against faults planted in schedules that were fit to run.
#include "pipeline/checker.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/generators.h"
#include "pipeline/memory.h"
#include "pipeline/random_schedule.h"

namespace teratron::testing {
namespace {

using namespace pipeline;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Calls plant(schedule, random) on many schedules; it returns what the checker has to say, or nothing if this schedule
// offers no place for the fault.
template <class Plant>
void expect_rejected(std::uint64_t seed, const Plant& plant) {
  RandomSequence random(RandomStream{.seed = seed});
  int planted = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Schedule schedule = any_schedule(random);
    ASSERT_THAT(schedule_faults(schedule), IsEmpty());
    const std::vector<std::string> reasons = plant(schedule, random);
    if (reasons.empty()) continue;
    ++planted;
    for (const std::string& reason : reasons) ASSERT_THAT(schedule_faults(schedule), Contains(HasSubstr(reason)));
  }
  EXPECT_GE(planted, 20);
}

struct Place {
  int stage;
  std::vector<Action>& list;
  std::ptrdiff_t at;
  const Action& action() const { return list[static_cast<std::size_t>(at)]; }
};

Place random_place(Schedule& schedule, RandomSequence& random) {
  const int stage = between(random, 0, schedule.stages - 1);
  std::vector<Action>& list = schedule.actions[static_cast<std::size_t>(stage)];
  return {stage, list, static_cast<std::ptrdiff_t>(random.below(list.size()))};
}

std::string named(const Schedule& schedule, const Place& place) {
  return fmt::format("stage {}: {}", place.stage, text_of(schedule, place.action()));
}

TEST(Checker, RandomOrdersThatRespectTheDataFlowPass) {
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 300; ++trial) {
    const ScheduleSize size{.stages = between(random, 1, 5),
                            .micro_batches = between(random, 1, 4),
                            .slices = between(random, 1, 4),
                            .virtual_stages = between(random, 1, 3)};
    ASSERT_THAT(schedule_faults(random_schedule(random, size)), IsEmpty());
  }
}

TEST(Checker, AMissingActionIsNamed) {
  expect_rejected(2, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    const std::string name = named(schedule, place);
    place.list.erase(place.list.begin() + place.at);
    return {name + " is missing"};
  });
}

TEST(Checker, ADuplicateIsNamedWhereverItStands) {
  expect_rejected(3, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    const std::string name = named(schedule, place);
    const auto where = static_cast<std::ptrdiff_t>(random.below(place.list.size() + 1));
    place.list.insert(place.list.begin() + where, Action(place.action()));
    return {name + " is there 2 times"};
  });
}

TEST(Checker, ABackwardDoneWholeAndInPartsIsNamed) {
  expect_rejected(4, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    if (place.action().pass != Pass::kBackward) return {};
    const std::string name = named(schedule, place);
    Action extra = place.action();
    extra.pass = Pass::kBackwardWeight;
    place.list.push_back(extra);
    return {name + " is there whole and in parts"};
  });
}

TEST(Checker, AnActionThatDoesNotExistIsNamed) {
  expect_rejected(5, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    Action& action = place.list[static_cast<std::size_t>(place.at)];
    switch (between(random, 0, 3)) {
      case 0: action.micro_batch = schedule.micro_batches; break;
      case 1: action.slice = schedule.slices; break;
      case 2: action.chunk = -1; break;
      default: action.micro_batch = -1; break;
    }
    return {named(schedule, place), "does not exist"};
  });
}

// Puts the later of two actions in front of the earlier one.
void bring_forward(std::vector<Action>& list, std::ptrdiff_t from, std::ptrdiff_t to) {
  std::rotate(list.begin() + to, list.begin() + from, list.begin() + from + 1);
}

std::ptrdiff_t find(const std::vector<Action>& list, const Action& wanted) {
  const auto found = std::find(list.begin(), list.end(), wanted);
  return found == list.end() ? -1 : found - list.begin();
}

TEST(Checker, ASliceOutOfOrderIsNamedForwardAndBackward) {
  expect_rejected(6, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    Action before = place.action();
    if (before.pass == Pass::kForward) --before.slice;  // what it attends to
    if (before.pass == Pass::kBackward) ++before.slice;
    const std::ptrdiff_t to = find(place.list, before);
    if (before == place.action() || to < 0) return {};
    const std::string name = named(schedule, place);
    bring_forward(place.list, place.at, to);
    return {name + " comes before"};
  });
}

TEST(Checker, ABackwardBeforeItsForwardIsNamed) {
  expect_rejected(7, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    if (place.action().pass != Pass::kBackward && place.action().pass != Pass::kBackwardInput) return {};
    Action before = place.action();
    before.pass = Pass::kForward;
    const std::string name = named(schedule, place);
    bring_forward(place.list, place.at, find(place.list, before));
    return {name + " comes before the output of"};
  });
}

TEST(Checker, AWeightGradientBeforeTheGradientItIsMadeOfIsNamed) {
  expect_rejected(8, [](Schedule& schedule, RandomSequence& random) -> std::vector<std::string> {
    const Place place = random_place(schedule, random);
    if (place.action().pass != Pass::kBackwardWeight) return {};
    Action before = place.action();
    before.pass = Pass::kBackwardInput;
    const std::string name = named(schedule, place);
    bring_forward(place.list, place.at, find(place.list, before));
    return {name + " comes before the input's gradient"};
  });
}

TEST(Checker, StagesThatWaitForOneAnotherAreNamedThoughEachListIsInOrder) {
  // One stage finishes a micro-batch before it begins the next; a later one wants all of them before it gives any back.
  RandomSequence random(RandomStream{.seed = 9});
  for (int trial = 0; trial < 100; ++trial) {
    const ScheduleSize size{
        .stages = between(random, 2, 5), .micro_batches = between(random, 2, 5), .slices = between(random, 1, 4)};
    Schedule schedule = make_schedule(ScheduleKind::kTeraPipe, size);
    const int early = between(random, 0, size.stages - 2);
    std::vector<Action>& list = schedule.actions[static_cast<std::size_t>(early)];
    std::stable_sort(list.begin(), list.end(),
                     [](const Action& a, const Action& b) { return a.micro_batch < b.micro_batch; });
    const std::vector<std::string> faults = schedule_faults(schedule);
    ASSERT_THAT(faults, Contains(HasSubstr(fmt::format("stage {}: backward of micro-batch 0", early))));
    for (const std::string& fault : faults) ASSERT_THAT(fault, HasSubstr("waits for ever"));
    ASSERT_THROW(check_schedule(schedule), InternalError);
  }
}

TEST(Checker, NamesResultsTakenInAnotherOrderThanSent) {
  expect_rejected(10, [](Schedule& schedule, RandomSequence&) -> std::vector<std::string> {
    const bool alike = schedule.slices_each.empty();
    if (!alike || schedule.stages < 2 || schedule.micro_batches < 2 || schedule.virtual_stages > 1) return {};
    // A stage without later work does its micro-batches in reverse: no wait is longer than for the first.
    std::vector<Action>& last = schedule.actions.back();
    if (find(last, {.pass = Pass::kBackward, .micro_batch = schedule.micro_batches - 1}) < 0) return {};
    for (std::vector<Action>& list : schedule.actions) {
      std::stable_partition(list.begin(), list.end(), [](const Action& a) { return a.pass == Pass::kForward; });
    }
    for (Action& action : last) action.micro_batch = schedule.micro_batches - 1 - action.micro_batch;
    return {fmt::format("stage {}: it takes the output of", schedule.stages - 1)};
  });
}

TEST(Checker, MoreLiveActivationsThanTheBoundAreNamed) {
  RandomSequence random(RandomStream{.seed = 11});
  for (int trial = 0; trial < 300; ++trial) {
    const Schedule schedule = any_schedule(random);
    std::int64_t most = 0;
    for (const MemoryPeak& peak : memory_peaks(schedule)) most = std::max(most, peak.slices);
    ASSERT_THAT(schedule_faults(schedule, most), IsEmpty());
    ASSERT_THAT(schedule_faults(schedule, most - 1),
                Contains(HasSubstr(fmt::format("it holds {} live activations; the bound is {}", most, most - 1))));
  }
}

TEST(Checker, AScheduleOfNothingAndListsForTheWrongNumberOfStagesAreFaults) {
  EXPECT_THAT(schedule_faults({.stages = 0}), ElementsAre(HasSubstr("0 stages")));
  EXPECT_THAT(schedule_faults({.stages = 2, .actions = {{}}}), ElementsAre("there are lists for 1 stages of 2"));
  EXPECT_THAT(schedule_faults({.micro_batches = 2, .slices = 3, .slices_each = {1, 2}, .actions = {{}}}),
              ElementsAre("the slices of 2 micro-batches are [1, 2], 3 at most"));
}

}  // namespace
}  // namespace teratron::testing
