// Runs CUDA kernels on the CPU, as a test tool, and refuses what a GPU refuses. Every thread of a block is a fiber that
// runs until it waits for others. A warp runs as far ahead of the others as barriers let it; a barrier that some
// threads never come to is an InternalError that says so. Blocks run one after another, in an order that changes from
// launch to launch.
//
// Not shown here are: anything of speed, what nvcc makes of the kernels, and races. The latter two are seen where a
// kernel runs by its PTX (ptx/launch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace teratron::emulated {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim3() = default;
  constexpr Dim3(unsigned in_x, unsigned in_y = 1, unsigned in_z = 1) : x(in_x), y(in_y), z(in_z) {}  // NOLINT: as CUDA
};

// Of the thread that runs.
extern thread_local Dim3 threadIdx, blockIdx, blockDim, gridDim;
int lane();
void* dynamic_shared_memory();

// InternalError for a launch that no GPU would take, for barriers that not all threads come to, and for copies to or
// from addresses that are not aligned.
void run_grid(const Dim3& grid, const Dim3& block, std::size_t shared_bytes, const std::function<void()>& thread);

struct LaunchedShape {
  Dim3 grid, block;
  std::size_t dynamic_shared = 0;  // bytes
};
struct KernelArgument {
  const void* value = nullptr;
  std::size_t bytes = 0, alignment = 1;
};
// Runs what nvcc made of a kernel, where its PTX is in use (ptx/launch.h), on the device memory that is allocated now.
bool runs_ptx();
void run_by_ptx(const void* kernel, const LaunchedShape& shape, std::span<const KernelArgument> arguments);

// How many kernels, copies and graphs the host has queued so far.
std::int64_t queued_calls();

// How much device memory there is from now on; 8 GiB at first.
void set_device_memory(std::size_t bytes);
std::size_t device_memory_in_use();
void set_memory_pools(bool has_them);  // whether there is cudaMallocAsync(); true at first

// Of the kernel that runs: the launch fails unless the address is a multiple of `bytes`.
void check_aligned(const void* address, std::size_t bytes, const char* what);

// The launch fails, for a kernel that this device does not run.
void trap();

void wait_for_block();
void wait_for_warp();

// What every lane of the warp puts in is what all can read until their next exchange.
constexpr std::size_t kLaneBytes = 64;
void put_in(const void* value, std::size_t bytes);
const void* put_in_by(int lane);

template <class T>
T value_of_lane(const T& value, int lane) {
  static_assert(sizeof(T) <= kLaneBytes);
  put_in(&value, sizeof(T));
  T result;
  std::memcpy(&result, put_in_by(lane), sizeof(T));
  return result;
}

// cp.async: copies that happen when they are waited for, and not before.
void start_copy(void* to, const void* from, std::size_t bytes, std::size_t given);  // the rest is zeros
void commit_copies();
void wait_for_copies(int groups_left);

}  // namespace teratron::emulated
