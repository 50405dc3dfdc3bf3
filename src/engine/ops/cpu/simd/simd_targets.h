// Instruction sets that the kernels of this folder are compiled for: 256-bit and 512-bit x86, and the compiler's
// baseline (emulated on x86-64, NEON on Arm). With sanitizers, which check accesses and not speed, 512-bit ones are
// left out. Included before Highway's headers.
#pragma once

#ifdef TERATRON_FEWER_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
