// Questions of tests to written kernels that have a fault, or none.
#pragma once

#include <gmock/gmock.h>

#include "base/error.h"
#include "emulated_gpu/ptx/written_kernel.h"

namespace teratron::emulated::ptx::testing {

// `line` counts the body's lines from 0.
inline void expect_finding(const std::string& body, int line, unsigned thread, const std::string& what,
                           const WrittenLaunch& launch = {}) {
  EXPECT_THAT([&] { run_written(body, launch); },
              ::testing::ThrowsMessage<InternalError>(::testing::AllOf(
                  ::testing::HasSubstr(fmt::format("written.ptx:{}: ", kFirstLine + line)),
                  ::testing::HasSubstr("in kernel written"), ::testing::HasSubstr(fmt::format("thread {} (", thread)),
                  ::testing::HasSubstr(what))))
      << body;
}
inline void expect_fine(const std::string& body, const WrittenLaunch& launch = {}) {
  EXPECT_NO_THROW(run_written(body, launch)) << body;
}

}  // namespace teratron::emulated::ptx::testing
