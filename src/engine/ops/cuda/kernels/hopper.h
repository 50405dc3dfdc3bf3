// Instructions of Hopper alone (sm_90a): mbarriers, bulk copies of tensors, and products of warpgroups, which all go on
// while threads do something else (PTX ISA: mbarrier, cp.async.bulk.tensor, wgmma). A file that includes this is
// compiled for other architectures, too, where none of it is there.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "base/float_types.h"

namespace teratron::cuda {

constexpr int kWarpgroup = 128;  // threads

}  // namespace teratron::cuda

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace teratron::cuda {

__device__ inline std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

// Ends a phase when as many threads have arrived as it awaits and as many bytes have been copied as they announced.
// Phases are counted from 0.
class Mbarrier {
 public:
  // By one thread, which then calls show_to_copies(); the others may use it after a barrier.
  __device__ void make(std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state_)), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state_)) : "memory");
  }
  __device__ void arrive_and_expect(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state_)), "r"(bytes)
                 : "memory");
  }
  // Until the phase ends. Returns at once for phase -1: what is free at the beginning.
  __device__ void wait_for(int phase) {
    std::uint32_t ended;
    do {
      asm volatile(
          "{\n\t.reg .pred %%ended;\n\t"
          "mbarrier.try_wait.parity.shared::cta.b64 %%ended, [%1], %2;\n\t"
          "selp.u32 %0, 1, 0, %%ended;\n\t}"
          : "=r"(ended)
          : "r"(shared_address(&state_)), "r"(phase & 1)
          : "memory");
    } while (ended == 0);
  }

  __device__ std::uint32_t address() const { return shared_address(&state_); }

 private:
  std::uint64_t state_;
};

// Makes this thread's writes to shared memory, mbarriers among them, visible to bulk copies and products that start
// after a barrier.
__device__ inline void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A box of a tensor of four axes, whose first elements are given from the fastest axis on. `to` is aligned to 1024
// bytes; zeros are outside the tensor.
__device__ inline void start_tensor_copy(void* to, const CUtensorMap& map, const Mbarrier& counts, int column, int head,
                                         int row, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(counts.address()), "r"(column), "r"(head), "r"(row), "r"(batch)
      : "memory");
}

// Barriers 1 to 15 of some of a block's threads, all threads of their warps.
template <int kThreads>
__device__ void wait_at_barrier(int number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}
template <int kThreads>
__device__ void arrive_at_barrier(int number) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}

// Registers of each thread of a warpgroup from here on. Those that take more wait until others have given theirs back.
template <int kCount>
__device__ void give_back_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Rows of kPanel 16-bit values in shared memory, as bulk copies with a swizzle of a row's 2 kPanel bytes leave them.
// Groups of eight rows follow one another, and so do panels, `panel_bytes` apart.
template <int kPanel>
__device__ std::uint64_t matrix_descriptor(const void* rows, std::uint32_t panel_bytes) {
  static_assert(kPanel == 64 || kPanel == 32);
  constexpr std::uint64_t kSwizzle = kPanel == 64 ? 1 : 2, kEightRows = 8 * 2 * kPanel;
  return std::uint64_t{(shared_address(rows) & 0x3ffffU) >> 4} | std::uint64_t{panel_bytes >> 4} << 16 |
         kEightRows >> 4 << 32 | kSwizzle << 62;
}
// The descriptor of what lies `bytes` further.
__device__ inline std::uint64_t moved_by(std::uint64_t descriptor, std::uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

// Around products: registers that were written are there for those that start after the fence; products that were
// started are committed as a group; all groups but the newest kGroupsLeft are done.
__device__ inline void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kGroupsLeft>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroupsLeft) : "memory");
}

// Keeps a compiler from reading or writing the sums earlier than here.
template <int kCount>
__device__ void hold(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int kCount>
__device__ void hold(std::uint32_t (&operands)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(operands[i])::"memory");
}

// clang-format off
#define TERATRON_SUMS_8(access, c, i) \
  access(c[i]), access(c[i + 1]), access(c[i + 2]), access(c[i + 3]), access(c[i + 4]), access(c[i + 5]), \
      access(c[i + 6]), access(c[i + 7])
#define TERATRON_SUMS_16(access, c, i) TERATRON_SUMS_8(access, c, i), TERATRON_SUMS_8(access, c, i + 8)
#define TERATRON_SUMS_32(access, c) TERATRON_SUMS_16(access, c, 0), TERATRON_SUMS_16(access, c, 16)
#define TERATRON_SUMS_48(access, c) TERATRON_SUMS_32(access, c), TERATRON_SUMS_16(access, c, 32)
#define TERATRON_SUMS_64(access, c) TERATRON_SUMS_48(access, c), TERATRON_SUMS_16(access, c, 48)
#define TERATRON_NAMES_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TERATRON_NAMES_48 \
  TERATRON_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TERATRON_NAMES_64 \
  TERATRON_NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// A warpgroup's sums [64, columns] = a b^T, or += where `adds` is 1, with a [64, 16] and b [columns, 16], both by
// descriptors.
#define TERATRON_MULTIPLY_ROWS(type, columns, names, sums, first, second, third, adds)                            \
  asm volatile("{\n\t.reg .pred %%adds;\n\tsetp.ne.b32 %%adds, %" third ", 0;\n\t"                                 \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names "}, %" first ", %"  \
               second ", %%adds, 1, 1, 0, 0;\n\t}"                                                                 \
               : sums                                                                                              \
               : "l"(a), "l"(b), "r"(adds)                                                                         \
               : "memory")
// A product that adds to sums reads them, too.
#define TERATRON_MULTIPLY_OR_ADD(type, columns, names, sums, first, second, third)                                \
  if constexpr (kAdds) {                                                                                           \
    TERATRON_MULTIPLY_ROWS(type, columns, names, sums("+f", c), first, second, third, 1);                          \
  } else {                                                                                                         \
    TERATRON_MULTIPLY_ROWS(type, columns, names, sums("=f", c), first, second, third, 0);                          \
  }

// A warpgroup's sums [64, columns] += a b with a [64, 16] in registers and b [16, columns] by a descriptor.
#define TERATRON_ADD_WEIGHTED(type, columns, names, sums, a0, a1, a2, a3, right, one)                             \
  asm volatile("{\n\t.reg .pred %%adds;\n\tsetp.ne.b32 %%adds, %" one ", 0;\n\t"                                   \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names "}, {%" a0 ", %" a1 \
               ", %" a2 ", %" a3 "}, %" right ", %%adds, 1, 1, 1;\n\t}"                                            \
               : sums("+f", c)                                                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)                                        \
               : "memory")
// clang-format on

template <class T>
constexpr bool kIsBf16 = std::is_same_v<T, Bf16>;

// Lane l of warp w of the four holds rows 16 w + l / 4 (+ 8) of the sums, in the columns of ptx.h's MatrixC, eight at a
// time. `a` and `b` describe rows of 16 columns. kAdds: to what is there.
template <class T, bool kAdds>
__device__ void multiply_rows(float (&c)[32], std::uint64_t a, std::uint64_t b) {
  if constexpr (kIsBf16<T>) {
    TERATRON_MULTIPLY_OR_ADD("bf16", "64", TERATRON_NAMES_32, TERATRON_SUMS_32, "32", "33", "34")
  } else {
    TERATRON_MULTIPLY_OR_ADD("f16", "64", TERATRON_NAMES_32, TERATRON_SUMS_32, "32", "33", "34")
  }
}
template <class T, bool kAdds>
__device__ void multiply_rows(float (&c)[64], std::uint64_t a, std::uint64_t b) {
  if constexpr (kIsBf16<T>) {
    TERATRON_MULTIPLY_OR_ADD("bf16", "128", TERATRON_NAMES_64, TERATRON_SUMS_64, "64", "65", "66")
  } else {
    TERATRON_MULTIPLY_OR_ADD("f16", "128", TERATRON_NAMES_64, TERATRON_SUMS_64, "64", "65", "66")
  }
}

// `a` is a MatrixA of ptx.h in every warp; `b` describes 16 rows.
template <class T>
__device__ void add_weighted_rows(float (&c)[32], const std::uint32_t* a, std::uint64_t b) {
  if constexpr (kIsBf16<T>) {
    TERATRON_ADD_WEIGHTED("bf16", "64", TERATRON_NAMES_32, TERATRON_SUMS_32, "32", "33", "34", "35", "36", "37");
  } else {
    TERATRON_ADD_WEIGHTED("f16", "64", TERATRON_NAMES_32, TERATRON_SUMS_32, "32", "33", "34", "35", "36", "37");
  }
}
template <class T>
__device__ void add_weighted_rows(float (&c)[48], const std::uint32_t* a, std::uint64_t b) {
  if constexpr (kIsBf16<T>) {
    TERATRON_ADD_WEIGHTED("bf16", "96", TERATRON_NAMES_48, TERATRON_SUMS_48, "48", "49", "50", "51", "52", "53");
  } else {
    TERATRON_ADD_WEIGHTED("f16", "96", TERATRON_NAMES_48, TERATRON_SUMS_48, "48", "49", "50", "51", "52", "53");
  }
}
template <class T>
__device__ void add_weighted_rows(float (&c)[64], const std::uint32_t* a, std::uint64_t b) {
  if constexpr (kIsBf16<T>) {
    TERATRON_ADD_WEIGHTED("bf16", "128", TERATRON_NAMES_64, TERATRON_SUMS_64, "64", "65", "66", "67", "68", "69");
  } else {
    TERATRON_ADD_WEIGHTED("f16", "128", TERATRON_NAMES_64, TERATRON_SUMS_64, "64", "65", "66", "67", "68", "69");
  }
}

#undef TERATRON_SUMS_8
#undef TERATRON_SUMS_16
#undef TERATRON_SUMS_32
#undef TERATRON_SUMS_48
#undef TERATRON_SUMS_64
#undef TERATRON_NAMES_32
#undef TERATRON_NAMES_48
#undef TERATRON_NAMES_64
#undef TERATRON_MULTIPLY_ROWS
#undef TERATRON_MULTIPLY_OR_ADD
#undef TERATRON_ADD_WEIGHTED

}  // namespace teratron::cuda

#endif
