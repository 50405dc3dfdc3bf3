// Kernels that tests write in PTX: one block, which mostly reads 8 bytes of `in` and writes 8 bytes of `out` a thread.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "emulated_gpu/ptx/launch.h"
#include "emulated_gpu/tensor_map.h"

namespace teratron::emulated::ptx::testing {

// Line of the first one of `body` in messages.
constexpr int kFirstLine = 22;

struct WrittenLaunch {
  std::vector<std::uint64_t> in = {};  // by default an element a thread, as out
  unsigned threads = 32;
  std::size_t dynamic_shared = 0;
  std::string shared = {};  // declarations
  std::size_t out = 0;      // elements; 0: one a thread
  unsigned most_threads = 64;
  std::optional<TensorMap> map = {};  // of `in`, as parameter `map`; its address is filled in
};

// %rd1 and %rd2 are the addresses of the thread's elements of in and out, %rd3 and %rd4 are the first ones, %r1 is the
// thread.
inline std::string written_kernel(const std::string& body, const WrittenLaunch& launch = {}) {
  return fmt::format(R"(.version 9.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.entry written(
	.param .u64 in,
	.param .u64 out{}
)
.maxntid {}, 1, 1
{{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .f32 %f<80>;
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
                     launch.map ? ", .param .align 128 .b8 map[128]" : "", launch.most_threads, launch.shared, body);
}

inline std::vector<std::uint64_t> run_written(const std::string& body, const WrittenLaunch& launch = {}) {
  const std::vector<std::uint64_t> in = launch.in.empty() ? std::vector<std::uint64_t>(launch.threads) : launch.in;
  std::vector<std::uint64_t> out(launch.out == 0 ? launch.threads : launch.out, ~std::uint64_t{0});
  const std::array<const std::vector<std::uint64_t>*, 2> memory = {&in, &out};
  const std::array<const void*, 2> pointers = {in.data(), out.data()};
  std::vector<KernelArgument> arguments;
  std::vector<Allocation> allocations;
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    arguments.push_back({&pointers[i], sizeof(pointers[i]), alignof(const void*)});
    const auto begin = reinterpret_cast<std::uint64_t>(pointers[i]);
    allocations.push_back({begin, begin + 8 * memory[i]->size()});
  }
  struct alignas(128) MapArgument {
    std::array<std::byte, 128> bytes{};
  } map;
  if (launch.map) {
    TensorMap filled = *launch.map;
    filled.address = reinterpret_cast<std::uint64_t>(in.data());
    std::memcpy(map.bytes.data(), &filled, sizeof(filled));
    arguments.push_back({&map, sizeof(map), alignof(MapArgument)});
  }
  const std::vector<KernelText> kernels = kernels_of(written_kernel(body, launch), "written.ptx");
  run(kernels.at(0), {.block = launch.threads, .dynamic_shared = launch.dynamic_shared}, arguments, allocations);
  return out;
}

}  // namespace teratron::emulated::ptx::testing
