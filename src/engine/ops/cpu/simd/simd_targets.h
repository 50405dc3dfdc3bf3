// Which instruction sets the kernels of this folder are compiled for: 256-bit and 512-bit x86, what the compiler's
// baseline is (emulated on x86-64, NEON on Arm), and nothing between; with sanitizers, which look at what is read and
// written and not at how fast, 512-bit ones are left out too. Included before anything of Highway's.
#pragma once

#ifdef TERATRON_FEWER_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
