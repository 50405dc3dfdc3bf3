// Which instruction sets the kernels of this folder are compiled for: 256-bit and 512-bit x86, what the compiler's
// baseline is (emulated on x86-64, NEON on Arm), and nothing between. Included before anything of Highway's.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
