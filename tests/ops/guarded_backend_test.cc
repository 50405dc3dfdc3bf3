// The CPU back end with guarded memory has the same results, and kills the process that touches a tensor outside of a
// call.
#include <gtest/gtest.h>

#include <array>

#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

std::unique_ptr<Backend> make_guarded_backend() { return make_cpu_backend({.guard_memory = true}); }

class GuardedBackend : public ::testing::TestWithParam<Operation> {};

TEST_P(GuardedBackend, GivesTheSameBitsAsTheUnguardedOne) {
  const auto guarded = make_guarded_backend(), plain = make_cpu_backend();
  Random random(3);
  for (int i = 0; i < 5; ++i) {
    const Trial trial = GetParam().make(random);
    EXPECT_TRUE(execute(trial, *guarded, 0, DType::kF32).memory == execute(trial, *plain, 0, DType::kF32).memory)
        << trial.sizes;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, GuardedBackend, ::testing::ValuesIn(host_operations()),
                         [](const auto& tested) { return tested.param.name; });

TEST(GuardedBackendDeathTest, TouchingATensorOutsideOfACallDies) {
  const auto backend = make_guarded_backend();
  const Tensor tensor = make_tensor(*backend, {4}, {1, 2, 3, 4});
  const auto* const data = static_cast<const volatile float*>(tensor.ref().data);
  EXPECT_DEATH((void)*data, "");
  EXPECT_EQ(download_values(*backend, tensor), (Values{1, 2, 3, 4}));
}

// An observer is called before the memory opens and after it has closed, so it cannot read either.
TEST(GuardedBackendDeathTest, AnObserverThatPeeksDies) {
  class Peeking : public CallObserver {
   public:
    void begin(std::string_view) override { (void)*address; }
    void end(std::string_view) override {}
    const volatile float* address = nullptr;
  };
  const auto backend = make_guarded_backend();
  const Tensor tensor = make_tensor(*backend, {4}, {1, 2, 3, 4});
  Peeking observer;
  observer.address = static_cast<const volatile float*>(tensor.ref().data);
  backend->set_observer(&observer);
  EXPECT_DEATH(backend->fill_zero(tensor), "");
}

}  // namespace
}  // namespace teratron::testing
