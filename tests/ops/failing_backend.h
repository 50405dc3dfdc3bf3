// A back end whose every operation fails, and that counts how often its memory was opened and closed.
#pragma once

#include "ops/backend.h"

namespace teratron::testing {

class FailingBackend : public Backend {
 public:
  int entered = 0, left = 0;

  std::string_view name() const override { return "failing"; }
  DType compute_dtype() const override { return DType::kF32; }
  void* allocate(std::int64_t) override { fail(); }
  void release(void*) noexcept override {}

 protected:
  void open_memory() override { ++entered; }
  void close_memory() noexcept override { ++left; }

#define TERATRON_FAIL(operation, Arguments) \
  void do_##operation(const Arguments&) override { fail(); }
#define TERATRON_FAIL_MEMORY(Result, operation, ...) \
  Result do_##operation(__VA_ARGS__) override { fail(); }
  TERATRON_OPERATIONS(TERATRON_FAIL)
  TERATRON_MEMORY_OPERATIONS(TERATRON_FAIL_MEMORY)
#undef TERATRON_FAIL
#undef TERATRON_FAIL_MEMORY

 private:
  [[noreturn]] static void fail() { throw EnvironmentError("this back end fails"); }
};

}  // namespace teratron::testing
