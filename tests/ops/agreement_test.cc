// Every operation of every back end against the reference in double, on random trials; and against itself, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/host/threads.h"
#include "base/trials.h"
#include "ops/back_ends.h"
#include "ops/trials/agreement.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

// Number of trials; TERATRON_TRIALS sets another. Sanitizers check accesses, for which fewer trials are enough.
int number_of_trials(const Backend& backend) {
  if (const char* const asked = std::getenv("TERATRON_TRIALS")) return std::max(1, std::atoi(asked));
#ifdef TERATRON_SANITIZED
  static_cast<void>(backend);
  return std::min(10, trials(30));
#else
  if (!is_fast_set()) return 30;
  return backend.processor() == "emulated" ? 10 : 20;
#endif
}

struct Case {
  BackEnd back_end;
  Operation operation;
};

void PrintTo(const Case& test_case, std::ostream* out) {
  *out << test_case.back_end.name << " " << test_case.operation.name;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const BackEnd& back_end : back_ends()) {
    for (const Operation& operation : back_end.operations()) cases.push_back({back_end, operation});
  }
  return cases;
}

std::vector<Case> cases_that_repeat() {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& test_case) { return !test_case.operation.repeats_bitwise; });
  return cases;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& tested) {
  return tested.param.back_end.name + "_" + tested.param.operation.name;
}

class Operations : public ::testing::TestWithParam<Case> {
 protected:
  // Calls visit(trial, offset) for the trials of this case; every back end gets the same ones.
  template <class Visit>
  void for_each_trial(int trials, const Visit& visit) {
    Random random(std::hash<std::string>{}(GetParam().operation.name));
    for (int i = 0; i < trials && !HasFatalFailure(); ++i) {
      const Trial trial = GetParam().operation.make(random);
      const std::int64_t offset = random.coin() ? 0 : random.below(20);
      SCOPED_TRACE(::testing::Message() << "trial " << i << ": " << trial.sizes << ", offset " << offset);
      visit(trial, offset);
    }
  }
};

// Back ends write the views of the arguments, and nothing around them.
TEST_P(Operations, WritesWhatTheReferenceDoesInDouble) {
  const auto backend = GetParam().back_end.make(), reference = make_reference_backend(DType::kF64);
  const DType compute = backend->compute_dtype();
  for_each_trial(number_of_trials(*backend), [&](const Trial& trial, std::int64_t offset) {
    const Outcome actual = execute(trial, *backend, offset, compute), expected = execute(trial, *reference, 0, compute);
    ASSERT_EQ(disagreement(trial, actual, expected, compute, GetParam().back_end.tensor_cores), "");
  });
}

class RepeatingOperations : public Operations {};

// The bits are the same also when the number of threads changes: a run may be resumed on another machine of its kind.
TEST_P(RepeatingOperations, GiveTheSameBitsWithAnyNumberOfThreads) {
  const auto backend = GetParam().back_end.make();
  const int usual_threads = thread_count();
  const int trials = std::max(1, number_of_trials(*backend) / 3);  // each of three executions, or two
  // A device that is no CPU has threads of its own.
  const std::vector<int> thread_counts = backend->processor().empty() ? std::vector<int>{1, 3} : std::vector<int>{1};
  const auto repeats = [&](const Trial& trial, std::int64_t offset) {
    const auto first = execute(trial, *backend, offset, backend->compute_dtype()).memory;
    for (const int threads : thread_counts) {
      set_thread_count(threads);
      const auto again = execute(trial, *backend, offset, backend->compute_dtype()).memory;
      for (const Argument& argument : trial.arguments) {
        EXPECT_TRUE(first.at(argument.name) == again.at(argument.name)) << argument.name << ", threads " << threads;
      }
    }
    set_thread_count(usual_threads);
  };
  for_each_trial(trials, repeats);
}

INSTANTIATE_TEST_SUITE_P(Every, Operations, ::testing::ValuesIn(all_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Every, RepeatingOperations, ::testing::ValuesIn(cases_that_repeat()), name_of_case);

}  // namespace
}  // namespace teratron::testing
