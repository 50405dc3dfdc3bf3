#include "ops/cpu/products/tile_unit.h"

#include "ops/cpu/products/bf16_kernels.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace teratron {
namespace {

struct CpuId {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;  // 0 where the processor does not know the leaf

  explicit CpuId(unsigned leaf, unsigned subleaf = 0) { __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx); }
};

constexpr bool has_bits(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }

// Whether the system saves the states of tiles (XCR0's bits 17 and 18) when it switches threads.
bool system_saves_tiles() {
  constexpr unsigned kHasXgetbv = 1U << 27;
  if (!has_bits(CpuId(1).ecx, kHasXgetbv)) return false;
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_bits(low, 3U << 17);
}

// Linux makes room for the state of tiles for processes that ask. It is refused where a signal's own stack is too small
// to hold it, and by kernels before 5.16.
bool system_permits_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Palette 1 is the only one there is. Its tiles have the size that TileShapes counts on.
bool has_usual_tiles() {
  if (CpuId(0x1d).eax < 1) return false;
  const CpuId palette(0x1d, 1);
  return palette.ebx >> 16 >= TileShapes::kTiles && (palette.ebx & 0xffffU) >= TileShapes::kMostRowBytes &&
         (palette.ecx & 0xffffU) >= TileShapes::kMostRows;
}

bool has_tiles() {
  constexpr unsigned kTile = 1U << 24, kBf16 = 1U << 22;
  return has_bits(CpuId(7).edx, kTile | kBf16) && has_bf16_products() && system_saves_tiles() && has_usual_tiles() &&
         system_permits_tiles();
}

bool has_f16_tiles() {
  constexpr unsigned kFp16 = 1U << 21;
  return CpuId(7).eax >= 1 && has_bits(CpuId(7, 1).eax, kFp16);
}

}  // namespace

bool has_tile_products(DType dtype) {
  if (dtype != DType::kBF16 && dtype != DType::kF16) return false;
  static const bool has_bf16 = has_tiles(), has_f16 = has_bf16 && has_f16_tiles();
  return dtype == DType::kBF16 ? has_bf16 : has_f16;
}

}  // namespace teratron

#else

namespace teratron {

bool has_tile_products(DType) { return false; }

}  // namespace teratron

#endif
