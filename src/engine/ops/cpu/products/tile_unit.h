// AMX's tiles as a kernel uses them (tile_kernels.cc), behind one interface: the processor's instructions here, and the
// same in plain C++ in emulated_tiles.h. No processor with AMX ever ran this: tests trap the instructions and emulate
// them one by one (tests/ops/amx_instructions_test.cc). A unit has eight tiles of at most 16 rows of 64 bytes. Their
// shapes are configured first, and every instruction works on what is configured:
//
//   configure(shapes)      LDTILECFG: all tiles become zero
//   zero<tile>()           TILEZERO
//   load<tile>(p, step)    TILELOADD: row i from p + i * step, in bytes; p needs no alignment
//   store<tile>(p, step)   TILESTORED
//   multiply<c, a, b>()    TDPBF16PS or TDPFP16PS: c[m, n] += the sum over q and over both halves of words of
//                          a[m, q] b[q, n], for fp32 elements of c and words of two values of T in a and b
//
// Tiles belong to a thread. One that has none configured is switched as fast as ever, so a unit frees them at its end.
//
// What the instructions add, as Intel's manual has it: the products of all low halves are summed in one fp32 value and
// those of all high halves in another, in the order of q, by fused multiply-adds. The two are added, and their sum to
// c. Rounding is to nearest even and MXCSR is not asked. Subnormal sums become zero, and so do subnormal values of bf16
// and of c that are read, but not those of f16.
//
// AVX512-FP16 is no substitute for AMX-FP16: its products are summed in fp16, of which training's sums need more than
// the 11 bits. The vector instruction with fp32 sums, VDPPHPS, came with AVX10.2.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "base/float_types.h"

namespace teratron {

// What LDTILECFG reads. A tile that is not used has neither rows nor bytes.
struct alignas(64) TileShapes {
  static constexpr std::int64_t kTiles = 8, kMostRows = 16, kMostRowBytes = 64;

  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(std::int64_t tile, std::int64_t tile_rows, std::int64_t tile_row_bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(tile_row_bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

// Whether this processor has AMX's products of bf16 or f16 and the system lets this process use them, which the first
// call asks for. Such a processor has_bf16_products(), too: operands are packed by its vectors.
bool has_tile_products(DType dtype);

#if defined(__x86_64__)

// The instructions, only where has_tile_products() of T. Written in assembly: GCC 12's intrinsics take no tile number
// from a template and do not tell the compiler which memory they read, and TDPFP16PS has none.
template <class T>
class AmxTiles {
 public:
  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { asm volatile("tilerelease" ::: "memory"); }

  void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }

  template <int tile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }

  template <int tile>
  void load(const void* from, std::int64_t row_step) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_step), "i"(tile) : "memory");
  }

  template <int tile>
  void store(void* to, std::int64_t row_step) const {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_step), "i"(tile) : "memory");
  }

  template <int c, int a, int b>
  void multiply() {
    if constexpr (std::is_same_v<T, Bf16>) {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
    } else {
      // tdpfp16ps %tmm<b>, %tmm<a>, %tmm<c>, by its bytes (VEX.128.F2.0F38.W0 5C), since assemblers before binutils
      // 2.40 do not know it: b stands inverted in bits 3 to 6 of the third.
      static_assert(std::is_same_v<T, F16>);
      asm volatile(".byte 0xc4, 0xe2, %c0, 0x5c, %c1" ::"i"((~b & 15) << 3 | 3), "i"(0xc0 | c << 3 | a));
    }
  }
};

#endif

}  // namespace teratron
