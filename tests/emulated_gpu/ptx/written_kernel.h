// Kernels that tests write in PTX: one block, which reads 8 bytes of `in` and writes 8 bytes of `out` a thread.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulated_gpu/ptx/launch.h"

namespace teratron::emulated::ptx::testing {

// Line of the first one of `body` in messages.
constexpr int kFirstLine = 22;

// %rd1 and %rd2 are the addresses of the thread's elements of in and out, %rd3 is the first one, %r1 is the thread.
inline std::string written_kernel(const std::string& body, const std::string& shared = "") {
  return fmt::format(R"(.version 9.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.entry written(
	.param .u64 in,
	.param .u64 out
)
.maxntid 64, 1, 1
{{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .f32 %f<20>;
	.reg .b32 %r<40>;
	.reg .f64 %fd<9>;
	.reg .b64 %rd<40>;
	{}
	ld.param.u64 %rd3, [in];
	ld.param.u64 %rd4, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd5, %r1, 8; add.s64 %rd1, %rd3, %rd5; add.s64 %rd2, %rd4, %rd5;
{}
	ret;
}}
)",
                     shared, body);
}

struct WrittenLaunch {
  std::vector<std::uint64_t> in;
  unsigned threads = 32;
  std::size_t dynamic_shared = 0;
  std::string shared = {};  // declarations
};

inline std::vector<std::uint64_t> run_written(const std::string& body, const WrittenLaunch& launch = {}) {
  const std::vector<std::uint64_t> in = launch.in.empty() ? std::vector<std::uint64_t>(launch.threads) : launch.in;
  std::vector<std::uint64_t> out(launch.threads, ~std::uint64_t{0});
  const std::array<const void*, 2> pointers = {in.data(), out.data()};
  std::vector<KernelArgument> arguments;
  std::vector<Allocation> allocations;
  for (const void* const& pointer : pointers) {
    arguments.push_back({&pointer, sizeof(pointer), alignof(const void*)});
    const auto begin = reinterpret_cast<std::uint64_t>(pointer);
    allocations.push_back({begin, begin + 8 * launch.threads});
  }
  const std::vector<KernelText> kernels = kernels_of(written_kernel(body, launch.shared), "written.ptx");
  run(kernels.at(0), {.block = launch.threads, .dynamic_shared = launch.dynamic_shared}, arguments, allocations);
  return out;
}

}  // namespace teratron::emulated::ptx::testing
