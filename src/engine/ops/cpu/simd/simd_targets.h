// Instruction sets that the kernels of this folder are compiled for: 256-bit and 512-bit x86, and the compiler's
// baseline (emulated on x86-64, NEON on Arm). With sanitizers, which check accesses and not speed, 512-bit ones are
// left out. Included before Highway's headers. A kernel's file includes itself once per target (foreach_target.h), so
// this room is compiled without unity files.
//
// SVE is left out: the compiler does not know the size of its vectors, so they can be in no array, and tiles of sums
// are arrays. Arm's Neoverse N2, V1 and V2 add up as many products a cycle in NEON as in SVE.
#pragma once

#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#elif defined(TERATRON_FEWER_TARGETS)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
