// Dropout masks of attention on Hopper: warps of the warpgroup that copies draw them, tile by tile, ahead of the
// warpgroups that multiply, which read a word a lane. Both run at once: products leave issue slots free.
#pragma once

#include "ops/cuda/attention/hopper_tiles.h"

namespace teratron::cuda {

constexpr int kMaskStages = 2;  // tiles of masks in shared memory

// Shared memory for masks of tiles of so many probabilities.
template <int kTileBits>
constexpr std::size_t kMaskBytes = kMaskStages*(kTileBits / 8 + 2 * sizeof(std::uint64_t));

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The copying warpgroup's warps but its first, which copies.
constexpr int kDrawingWarps = kWarpgroup / kWarp - 1;

template <int kTileBits>
struct MaskMemory {
  // Byte b of a lane's word: bit n says whether value (n, b) is kept, as Kept::at() numbers them.
  std::uint32_t words[kMaskStages][kTileBits / 32];
  Mbarrier given[kMaskStages], free[kMaskStages];

  __device__ void make_mbarriers() {
    for (int stage = 0; stage < kMaskStages; ++stage) {
      given[stage].make(kDrawingWarps);
      free[stage].make(kConsumerWarps);
    }
  }
};

// Which of a lane's 32 values are kept.
struct Kept {
  std::uint32_t word;
  __device__ bool at(int byte, int n) const { return (word & 1U << (8 * byte + n)) != 0; }
  // Ones for the kept ones of two rounded values (n, 2 * half) and (n, 2 * half + 1).
  __device__ std::uint32_t pair(int half, int n) const {
    std::uint32_t ones;  // bytes' highest bits, repeated
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(ones) : "r"(word << (7 - n)), "r"(half == 0 ? 0x9988U : 0xbbaaU));
    return ones;
  }
};

// A lane's words `first`, `first` + kApart, .. of tile n's mask, which all warps that multiply read once.
template <int kCount, int kApart, int kTileBits>
__device__ void read_mask(Kept (&kept)[kCount], MaskMemory<kTileBits>& memory, int n, int first) {
  const int stage = n % kMaskStages;
  memory.given[stage].wait_for(n / kMaskStages);
#pragma unroll
  for (int i = 0; i < kCount; ++i) kept[i].word = memory.words[stage][first + i * kApart];
  release(memory.free[stage]);
}

// Draws a head's mask, eight times eight keys at a time.
class MaskDrawer {
 public:
  __device__ MaskDrawer(const AttentionMask& mask, int b, int h)
      : mask_(mask), head_(mask.of_head(b, h)), is_aligned_(mask.is_aligned(head_)) {}

  // Bit n of byte r: whether key + n * keys_apart + r is kept for query + n * queries_apart.
  template <int kKeysApart, int kQueriesApart>
  __device__ void draw(std::uint32_t (&bytes)[8], int query, int key) const {
#pragma unroll
    for (std::uint32_t& byte : bytes) byte = 0;
    const std::int64_t first = head_.first_element + query * mask_.key_stride + key,
                       apart = kQueriesApart * mask_.key_stride + kKeysApart;
    if (is_aligned_) {
      std::int64_t block = first / kMaskBlock;
#pragma unroll 2
      for (int n = 0; n < 8; ++n, block += apart / kMaskBlock) {
        const PhiloxCounter drawn = words(block);
#pragma unroll
        for (int r = 0; r < 8; ++r) bytes[r] |= is_kept(drawn, r) ? 1U << n : 0U;
      }
    } else {
#pragma unroll 1
      for (int n = 0; n < 8; ++n) {
        const std::int64_t element = first + n * apart;
        const std::uint32_t two = eight(element / kMaskBlock) | eight(element / kMaskBlock + 1) << 8;
#pragma unroll
        for (int r = 0; r < 8; ++r) bytes[r] |= (two >> (element % kMaskBlock + r) & 1U) << n;
      }
    }
  }

 private:
  // philox4x32() once more, by products of 32 bits: of those of 64 bits compilers make a quarter more instructions.
  __device__ PhiloxCounter words(std::int64_t block) const {
    const RandomStream& random = mask_.mask.random;
    PhiloxCounter words = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), head_.step,
                           static_cast<std::uint32_t>(random.purpose) << 24 | random.stream};
    PhiloxKey key = {static_cast<std::uint32_t>(random.seed), static_cast<std::uint32_t>(random.seed >> 32)};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      words = {__umulhi(kPhiloxMultiplierB, words[2]) ^ words[1] ^ key[0], kPhiloxMultiplierB * words[2],
               __umulhi(kPhiloxMultiplierA, words[0]) ^ words[3] ^ key[1], kPhiloxMultiplierA * words[0]};
      key[0] += kPhiloxWeylA;
      key[1] += kPhiloxWeylB;
    }
    return words;
  }

  // Whether element i of a block is kept, as DropoutMask::kept() says.
  __device__ bool is_kept(const PhiloxCounter& words, int i) const {
    return (i % 2 == 0 ? words[i / 2] << 16 : words[i / 2]) >= mask_.mask.threshold << 16;
  }

  __device__ std::uint32_t eight(std::int64_t block) const {
    const PhiloxCounter drawn = words(block);
    std::uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < kMaskBlock; ++i) bits |= is_kept(drawn, i) ? 1U << i : 0U;
    return bits;
  }

  const AttentionMask& mask_;
  const HeadMask head_;
  const bool is_aligned_;
};

// Draws tile n by draw_unit(unit, words), where a tile is so many units of 64 probabilities.
template <int kTileBits, class DrawUnit>
__device__ void draw_tile(MaskMemory<kTileBits>& memory, int n, int warp, const DrawUnit& draw_unit) {
  const int stage = n % kMaskStages;
  memory.free[stage].wait_for(n / kMaskStages - 1);
#pragma unroll 1
  for (int part = (warp - 1 + n) % kDrawingWarps; part < kTileBits / 64 / kWarp; part += kDrawingWarps) {
    draw_unit(part * kWarp + lane_index(), reinterpret_cast<std::uint8_t*>(memory.words[stage]));
  }
  __syncwarp();  // the leader's arrival shows what all have stored
  if (lane_index() == 0) memory.given[stage].arrive();
}

#endif

}  // namespace teratron::cuda
