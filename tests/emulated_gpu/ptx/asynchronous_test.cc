// Instructions that go on while threads do something else: products of warpgroups beside products in C++, bulk copies,
// mbarriers; and what is found where nobody waits for them.
#include <gtest/gtest.h>

#include <bit>

#include "base/dtype.h"
#include "emulated_gpu/ptx/findings.h"

namespace teratron::emulated::ptx::testing {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kRows = 64, kDepth = 16, kWarpgroup = 128;

// How a matrix of rows (of a, or columns of b) by k lies in shared memory.
struct Placement {
  u32 swizzle = 3;               // log2 of the span's chunks of 16 bytes
  bool rows_contiguous = false;  // along memory's rows; else k is

  u32 span() const { return 16U << swizzle; }
  // A swizzle's place for the chunks of a line of the span's width.
  u32 chunk_of(u32 line, u32 chunk) const {
    return swizzle == 3   ? chunk ^ line % 8
           : swizzle == 2 ? chunk ^ line / 2 % 4
           : swizzle == 1 ? chunk ^ line / 4 % 2
                          : chunk;
  }
  // First of the 16 columns that are multiplied, where a line has more.
  u32 first_k() const { return !rows_contiguous && swizzle >= 2 ? 16 : 0; }
  u32 leading() const { return swizzle == 0 ? 128 : rows_contiguous ? kDepth * span() : 16; }
  u32 stride() const { return swizzle == 0 ? 256 : 8 * span(); }

  u32 offset(u32 row, u32 k) const {
    if (swizzle == 0) {
      const u32 outer = rows_contiguous ? k : row, inner = rows_contiguous ? row : k;
      return (row / 8) * 256 + (k / 8) * 128 + outer % 8 * 16 + inner % 8 * 2;
    }
    if (!rows_contiguous) return row * span() + chunk_of(row, (first_k() + k) / 8) * 16 + k % 8 * 2;
    const u32 panel = row / (span() / 2), column = row % (span() / 2);
    return panel * kDepth * span() + k * span() + chunk_of(k, column / 8) * 16 + column % 8 * 2;
  }
  u64 descriptor(u32 at) const {
    return u64{at + 2 * first_k()} >> 4 | u64{leading()} >> 4 << 16 | u64{stride()} >> 4 << 32 |
           u64{swizzle == 0 ? 0U : 4 - swizzle} << 62;
  }
};

struct ProductCase {
  u32 columns;
  Placement a, b;
  bool a_in_registers = false, halves = false;
};

constexpr u32 kRightAt = 8192, kFragmentsAt = 8192 + 12288, kImage = kFragmentsAt + kWarpgroup * 16;

float left(u32 row, u32 k) { return static_cast<float>((row * 5 + k * 3) % 7); }
float right(u32 column, u32 k) { return static_cast<float>((column + k * 2) % 5) - 2; }

// Shared memory's contents, and beyond them the left operand as lanes hold it.
std::vector<u64> image_of(const ProductCase& tested) {
  std::vector<u64> image(kImage / 8);
  auto* const bytes = reinterpret_cast<std::byte*>(image.data());
  const auto put = [&](u32 at, float value) {
    const u16 bits = tested.halves ? float_to_f16(value) : float_to_bf16(value);
    std::memcpy(bytes + at, &bits, sizeof(bits));
  };
  for (u32 k = 0; k < kDepth; ++k) {
    for (u32 row = 0; row < kRows; ++row) put(tested.a.offset(row, k), left(row, k));
    for (u32 column = 0; column < tested.columns; ++column)
      put(kRightAt + tested.b.offset(column, k), right(column, k));
  }
  for (u32 thread = 0; thread < kWarpgroup; ++thread) {
    for (u32 e = 0; e < 8; ++e) {
      const u32 row = thread / 32 * 16 + thread % 32 / 4 + 8 * (e / 2 % 2), k = 2 * (thread % 4) + e % 2 + 8 * (e / 4);
      put(kFragmentsAt + thread * 16 + e * 2, left(row, k));
    }
  }
  return image;
}

// Copies the image to shared memory, and gives it to the asynchronous proxy.
const std::string kFill = fmt::format(
    "shl.b32 %r2, %r1, 3;\n$fill:\nmov.u32 %r3, dynamic; add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd6, %r2;\n"
    "add.s64 %rd6, %rd6, %rd3; ld.global.u64 %rd7, [%rd6]; st.shared.u64 [%r3], %rd7; add.u32 %r2, %r2, 1024;\n"
    "setp.lt.u32 %p1, %r2, {}; @%p1 bra $fill;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n",
    kFragmentsAt);

// Sums %f20 on of `columns / 2`.
std::string product(const ProductCase& tested, const std::string& adds) {
  std::string sums;
  for (u32 i = 0; i < tested.columns / 2; ++i) sums += fmt::format("{}%f{}", i == 0 ? "" : ", ", 20 + i);
  const char* const type = tested.halves ? "f16" : "bf16";
  const std::string name = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{}", tested.columns, type, type);
  if (tested.a_in_registers) {
    return fmt::format("{} {{{}}}, {{%r10, %r11, %r12, %r13}}, %rd11, {}, 1, 1, {:d};\n", name, sums, adds,
                       tested.b.rows_contiguous);
  }
  return fmt::format("{} {{{}}}, %rd10, %rd11, {}, 1, 1, {:d}, {:d};\n", name, sums, adds, tested.a.rows_contiguous,
                     tested.b.rows_contiguous);
}

// The operands' registers, before a fence.
std::string operands(const ProductCase& tested) {
  return fmt::format(
      "mov.u64 %rd10, {}; mov.u64 %rd11, {}; shl.b32 %r5, %r1, 4; cvt.u64.u32 %rd8, %r5; add.s64 %rd9, %rd3, %rd8;\n"
      "ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd9+{}]; setp.eq.u32 %p3, %r1, 1000; setp.ne.u32 %p4, %r1, "
      "1000;\n",
      tested.a.descriptor(0), tested.b.descriptor(kRightAt), kFragmentsAt);
}

std::string store(u32 columns) {
  std::string text =
      fmt::format("mul.lo.u32 %r6, %r1, {}; cvt.u64.u32 %rd8, %r6; add.s64 %rd9, %rd4, %rd8;\n", columns * 2);
  for (u32 i = 0; i < columns / 2; ++i) text += fmt::format("st.global.f32 [%rd9+{}], %f{};\n", 4 * i, 20 + i);
  return text;
}

WrittenLaunch launch_of(const ProductCase& tested) {
  return {.in = image_of(tested),
          .threads = kWarpgroup,
          .dynamic_shared = kFragmentsAt,
          .out = kWarpgroup * tested.columns / 4,
          .most_threads = kWarpgroup};
}

const std::string kFence = "wgmma.fence.sync.aligned;\n", kCommit = "wgmma.commit_group.sync.aligned;\n",
                  kWait = "wgmma.wait_group.sync.aligned 0;\n";

// The first product forgets what was there, the second one adds to it.
void expect_product(const ProductCase& tested) {
  const std::vector<u64> out = run_written(kFill + operands(tested) + kFence + product(tested, "%p3") +
                                               product(tested, "%p4") + kCommit + kWait + store(tested.columns),
                                           launch_of(tested));
  for (u32 thread = 0; thread < kWarpgroup; ++thread) {
    for (u32 i = 0; i < tested.columns / 2; ++i) {
      const u32 row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i % 4 / 2),
                column = i / 4 * 8 + 2 * (thread % 4) + i % 2;
      float expected = 0;
      for (u32 k = 0; k < kDepth; ++k) expected += 2 * left(row, k) * right(column, k);
      const u64 pair = out[(thread * tested.columns / 2 + i) / 2];
      ASSERT_EQ(std::bit_cast<float>(static_cast<u32>(pair >> (32 * (i % 2)))), expected)
          << row << ", " << column << " swizzles " << tested.a.swizzle << ", " << tested.b.swizzle
          << " rows contiguous " << tested.a.rows_contiguous << ", " << tested.b.rows_contiguous;
    }
  }
}

TEST(PtxWarpgroups, MultiplyMatricesByDescriptorsOfAnyLayout) {
  for (const u32 swizzle : {0U, 1U, 2U, 3U}) {
    for (const bool contiguous : {false, true}) {
      expect_product({.columns = 16, .a = {.swizzle = swizzle, .rows_contiguous = contiguous}, .b = {}});
      expect_product(
          {.columns = 96, .a = {}, .b = {.swizzle = swizzle, .rows_contiguous = contiguous}, .halves = true});
    }
  }
}

TEST(PtxWarpgroups, MultiplyMatricesInRegisters) {
  for (const u32 columns : {8U, 64U, 96U}) {
    expect_product({.columns = columns, .a = {}, .b = {.swizzle = 2, .rows_contiguous = true}, .a_in_registers = true});
  }
}

// Kernels that take the products apart. `found` is looked for at the line of `at` (a part of it).
const ProductCase kSmall{.columns = 8, .a = {}, .b = {}},
    kOfRegisters{.columns = 8, .a = {}, .b = {}, .a_in_registers = true};

void expect_found(const std::string& body, const std::string& at, const std::string& what,
                  const WrittenLaunch& launch) {
  const std::size_t begin = body.rfind(at);
  ASSERT_NE(begin, std::string::npos);
  const auto line = std::count(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
  EXPECT_THAT(
      [&] { run_written(body, launch); },
      ::testing::ThrowsMessage<InternalError>(::testing::AllOf(
          ::testing::HasSubstr(fmt::format("written.ptx:{}: ", kFirstLine + line)), ::testing::HasSubstr(what))))
      << body;
}
std::string without(std::string body, const std::string& part) {
  const std::size_t at = body.rfind(part);
  check(at != std::string::npos, "the part is there");
  return body.erase(at, part.size());
}

TEST(PtxWarpgroups, AreWaitedForBeforeTheirRegistersAreTouched) {
  const WrittenLaunch launch = launch_of(kOfRegisters);
  const std::string begin = kFill + operands(kOfRegisters) + kFence + product(kOfRegisters, "%p3") + kCommit;
  expect_fine(begin + kWait + store(8), launch);
  expect_found(begin + store(8), "st.global.f32 [%rd9+0]", "reads a register to which a product (wgmma) adds", launch);
  expect_found(begin + "wgmma.wait_group.sync.aligned 1;\n" + store(8), "st.global.f32 [%rd9+0]", "reads a register",
               launch);
  expect_found(without(begin, kCommit) + kWait + store(8), "st.global.f32 [%rd9+0]", "reads a register", launch);
  expect_found(begin + "mov.u32 %r11, 0;\n" + kWait, "mov.u32 %r11", "writes a register that a product", launch);
  expect_found(begin + "mov.f32 %f21, 0f00000000;\n" + kWait, "mov.f32 %f21", "writes a register to which", launch);
  EXPECT_THAT([&] { run_written(begin, launch); },
              ::testing::ThrowsMessage<InternalError>(::testing::HasSubstr("ends without waiting for its products")));
}

TEST(PtxWarpgroups, AreFencedFromWhatWroteTheirRegisters) {
  const WrittenLaunch launch = launch_of(kOfRegisters);
  const std::string registers =
      kFill + operands(kOfRegisters) + kFence + product(kOfRegisters, "%p3") + kCommit + kWait;
  expect_found(without(registers, kFence), "wgmma.mma", "without wgmma.fence", launch);
  const std::string sums =
      registers + "mov.f32 %f21, 0f00000000;\n" + kFence + product(kOfRegisters, "%p4") + kCommit + kWait;
  expect_fine(sums, launch);
  expect_found(without(sums, kFence), "wgmma.mma", "without wgmma.fence", launch);
}

TEST(PtxWarpgroups, ReadSharedMemoryThatIsThereAndStays) {
  const WrittenLaunch launch = launch_of(kSmall);
  const std::string begin = kFill + operands(kSmall) + kFence + product(kSmall, "%p3") + kCommit;
  const std::string overwrite =
      "st.shared.u8 [%r3], %r1;\n";  // the thread's last bytes of the fill: the right operand's
  const std::string elsewhere = "mov.u32 %r3, dynamic; st.shared.u8 [%r3+8224], %r1;\n";
  expect_found(without(begin, "fence.proxy.async.shared::cta;") + kWait, "wgmma.mma", "without fence.proxy.async",
               launch);
  expect_found(without(begin, "bar.sync 0;") + kWait, "wgmma.mma", "with no barrier between them (a race)", launch);
  const std::string first = "setp.ne.u32 %p5, %r1, 127; @%p5 bra $on;\n" + elsewhere + "$on:\n";
  expect_found(begin + first + kWait, "st.shared.u8", "that a product (wgmma) of warp", launch);
  expect_found(begin + kWait + first, "st.shared.u8", "that a product (wgmma) of warp", launch);
  expect_fine(begin + kWait + "bar.sync 0;\n" + first, launch);
}

TEST(PtxWarpgroups, DoTheSameInAllTheirWarps) {
  const std::string begin = kFill + operands(kSmall), end = kFence + product(kSmall, "%p3") + kCommit + kWait;
  const std::string last = "shr.u32 %r7, %r1, 5; setp.eq.u32 %p5, %r7, 3;\n";
  expect_found(begin + last + "@%p5 add.s64 %rd11, %rd11, 1;\n" + end, "wgmma.mma", "a warp of its warpgroup",
               launch_of(kSmall));
  expect_found(begin + last + "@%p5 bra $on;\n" + end + "$on:\n", "wgmma.fence", "does this without it",
               launch_of(kSmall));
  expect_found(begin + "and.b32 %r7, %r1, 1; cvt.u64.u32 %rd12, %r7; add.s64 %rd11, %rd11, %rd12;\n" + end, "wgmma.mma",
               "not that of the others", launch_of(kSmall));
  WrittenLaunch two_warps = launch_of(kSmall);
  two_warps.threads = 64;
  expect_found(begin + end, "wgmma.fence", "less than four warps", two_warps);
}

// A tensor of 24 columns, 2 heads, 5 rows, 2 batches of 16-bit numbers, and boxes of 32 columns and 8 rows.
constexpr u32 kTensorColumns = 24, kTensorRows = 5;
const TensorMap kMap{.magic = TensorMap::kMagic,
                     .strides = {2 * kTensorColumns, 4 * kTensorColumns, 4 * kTensorColumns* kTensorRows},
                     .sizes = {kTensorColumns, 2, kTensorRows, 2},
                     .box = {32, 1, 8, 1},
                     .axes = 4,
                     .element_bytes = 2,
                     .swizzle_bits = 2};

WrittenLaunch launch_of_copy() {
  std::vector<u64> in(kTensorColumns * 2 * kTensorRows * 2 / 4);
  auto* const bytes = reinterpret_cast<std::byte*>(in.data());
  for (u16 i = 0; i < in.size() * 4; ++i) std::memcpy(bytes + 2 * i, &i, sizeof(i));
  return {.in = in, .threads = 64, .dynamic_shared = 2048, .map = kMap};
}

// Thread 0 makes the mbarrier at the beginning of shared memory and copies after it; all read 8 bytes each.
const std::string kMake =
    "mov.u32 %r2, dynamic; add.u32 %r2, %r2, 1024; shl.b32 %r5, %r1, 3; add.u32 %r3, %r2, %r5; mov.b64 %rd6, map;\n"
    "cvta.param.u64 %rd6, %rd6; mov.u32 %r10, 0; mov.u32 %r11, 1; mov.u32 %r12, -2; mov.u32 %r13, 1;\n"
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared::cta.b64 [dynamic], 1;\n@%p1 fence.proxy.async.shared::cta;\n"
    "bar.sync 0;\n";
const std::string kExpect = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [dynamic], 512;\n";
const std::string kCopy =
    "@%p1 cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd6, {%r10, %r11, "
    "%r12, %r13}], [dynamic];\n";
const std::string kCopied = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [dynamic], 0;\n";
const std::string kReadCopy = "ld.shared.u64 %rd7, [%r3];\nst.global.u64 [%rd2], %rd7;\n";

TEST(PtxBulkCopies, TakeBoxesOfTensorsWithZerosAroundThem) {
  const std::vector<u64> out = run_written(kMake + kExpect + kCopy + kCopied + kReadCopy, launch_of_copy());
  for (u32 row = 0; row < 8; ++row) {
    for (u32 column = 0; column < 32; ++column) {
      const int of_tensor = static_cast<int>(row) - 2;
      const bool inside = of_tensor >= 0 && of_tensor < static_cast<int>(kTensorRows) && column < kTensorColumns;
      const u32 element = ((kTensorRows + static_cast<u32>(of_tensor)) * 2 + 1) * kTensorColumns + column;
      const u32 at = row * 64 + (column / 8 ^ row / 2 % 4) * 16 + column % 8 * 2;
      EXPECT_EQ(out[at / 8] >> (at % 8 * 8) & 0xffff, inside ? element : 0) << row << ", " << column;
    }
  }
}

TEST(PtxBulkCopies, AreWaitedForByTheirMbarriers) {
  const WrittenLaunch launch = launch_of_copy();
  const std::string begin = kMake + kExpect + kCopy;
  expect_found(begin + kReadCopy + kCopied, "ld.shared", "to which a bulk copy is under way", launch);
  const std::string other_parity = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [dynamic], 1;\n";
  expect_found(begin + other_parity + kReadCopy, "ld.shared", "a bulk copy is under way", launch);
  const std::string other_phase = kCopied + other_parity;
  expect_found(begin + other_phase + kReadCopy, "try_wait.parity", "awaits 1 arrivals of 1 and 0 bytes in phase 1",
               launch);
  const std::string only_arrive = "@%p1 mbarrier.arrive.shared::cta.b64 _, [dynamic];\n";
  expect_found(kMake + only_arrive + kCopy + kCopied + kReadCopy, "ld.shared", "a bulk copy is under way", launch);
  expect_found(begin, "cp.async", "for which the block does not wait", launch);
  expect_found(begin + "@%p1 " + kCopied + kReadCopy, "ld.shared", "a bulk copy is under way", launch);
}

TEST(PtxBulkCopies, BringAsManyBytesAsWereAnnounced) {
  const auto announced = [](const std::string& bytes) {
    return kMake + "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [dynamic], " + bytes + ";\n" + kCopy + kCopied;
  };
  expect_fine(announced("512"), launch_of_copy());
  expect_found(announced("640"), "try_wait", "0 arrivals of 1 and 128 bytes in phase 0", launch_of_copy());
  expect_found(announced("384"), "try_wait", "0 arrivals of 1 and -128 bytes in phase 0", launch_of_copy());
  const std::string none = kMake + kCopy + kCopied;
  expect_found(none, "try_wait", "1 arrivals of 1 and -512 bytes in phase 0", launch_of_copy());
}

TEST(PtxBulkCopies, NeedMemoryThatNobodyReadsAndMbarriersThatAreMade) {
  const WrittenLaunch launch = launch_of_copy();
  const std::string once = kMake + kExpect + kCopy + kCopied + kReadCopy, again = kExpect + kCopy;
  const std::string end = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [dynamic], 1;\n";
  expect_fine(once + "bar.sync 0;\n" + again + end, launch);
  expect_found(once + again + end, "cp.async", "with no barrier between them (a race)", launch);
  expect_found(without(once, "@%p1 fence.proxy.async.shared::cta;"), "cp.async", "made without fence.proxy.async",
               launch);
  expect_found(without(once, "bar.sync 0;"), "try_wait", "with no barrier between them (a race)", launch);
  expect_found(without(once, "@%p1 mbarrier.init.shared::cta.b64 [dynamic], 1;"), "mbarrier.arrive", "no mbarrier",
               launch);
  expect_found(kMake + kExpect + "add.u32 %r2, %r2, 64;\n" + kCopy, "cp.async", "a misaligned address", launch);
  expect_found(kMake + kExpect + "add.u32 %r2, %r2, 768;\n" + kCopy, "cp.async", "beyond shared memory", launch);
  WrittenLaunch no_map = launch;
  no_map.map->magic = 0;
  expect_found(once, "cp.async", "what is no tensor map", no_map);
}

const WrittenLaunch kFourWarps{.threads = 128, .most_threads = 128};

TEST(PtxBarriers, OfSomeWarpsAreCountedByThreads) {
  const std::string half = "setp.lt.u32 %p1, %r1, 64;\n";
  expect_fine(half + "@%p1 bra $on;\nbar.sync 1, 64;\n$on:\n", kFourWarps);
  expect_fine(half + "@%p1 bra $on;\nbar.sync 1, 128;\nret;\n$on:\nbar.arrive 1, 128;\n", kFourWarps);
  expect_found(half + "@%p1 bra $on;\nbar.sync 1, 96;\n$on:\n", "bar.sync", "a barrier of 96 threads, to which 64 come",
               kFourWarps);
  expect_found(half + "@%p1 bra $on;\nbar.sync 1, 96;\nret;\n$on:\nbar.arrive 1, 128;\n", "bar.sync",
               "a barrier of 96 threads, at which others are 128", kFourWarps);
}

TEST(PtxBarriers, OfSomeWarpsOrderTheirMemory) {
  const WrittenLaunch launch{.threads = 128, .dynamic_shared = 1024, .most_threads = 128};
  const std::string addresses =
      "mov.u32 %r4, dynamic; shl.b32 %r5, %r1, 3; add.u32 %r2, %r4, %r5; xor.b32 %r3, %r2, 256;\n"
      "shr.u32 %r6, %r1, 6; add.u32 %r6, %r6, 1;\n";
  const std::string write = "st.shared.u64 [%r2], %rd5;\n", read = "ld.shared.u64 %rd6, [%r3];\n";
  expect_fine(addresses + write + "bar.sync %r6, 64;\n" + read, launch);
  expect_found(addresses + write + read, "st.shared", "with no barrier between them (a race)", launch);
  const std::string others =
      addresses + write + "bar.sync %r6, 64;\nxor.b32 %r3, %r2, 512; ld.shared.u64 %rd6, [%r3];\n";
  expect_found(others, "st.shared", "with no barrier between them (a race)", launch);
}

// A lane of each warp arrives for what its warp has read; then thread 0 writes there.
TEST(PtxMbarriers, OrderReadsOfAllWarpsThatArrive) {
  const WrittenLaunch launch{.threads = 128, .dynamic_shared = 1024, .most_threads = 128};
  const auto awaiting = [](int warps) {
    return "mov.u32 %r2, dynamic; and.b32 %r4, %r1, 31; setp.ne.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r4, 0;\n"
           "@%p1 bra $made;\nmbarrier.init.shared::cta.b64 [dynamic], " +
           std::to_string(warps) +
           ";\n$made:\nbar.sync 0;\nld.shared.u32 %r3, [%r2+64];\nbar.warp.sync -1;\n"
           "@%p2 mbarrier.arrive.shared::cta.b64 _, [dynamic];\n@%p1 bra $on;\n"
           "mbarrier.try_wait.parity.shared::cta.b64 %p3, [dynamic], 0;\nst.shared.u32 [%r2+64], %r3;\n$on:\n";
  };
  expect_fine(awaiting(4), launch);
  expect_found(awaiting(3), "st.shared", "several threads read with no barrier between them (a race)", launch);
  expect_found(without(awaiting(4), "bar.warp.sync -1;"), "st.shared", "several threads read with no barrier", launch);
}

TEST(PtxRegisters, AreTakenWhenOthersHaveGivenThemBack) {
  const WrittenLaunch three_groups{.threads = 384, .most_threads = 384};
  const std::string first = "setp.lt.u32 %p1, %r1, 128;\n@%p1 bra $first;\n";
  const std::string take = "setmaxnreg.inc.sync.aligned.u32 240;\nret;\n$first:\n";
  expect_fine(first + take + "setmaxnreg.dec.sync.aligned.u32 24;\n", three_groups);
  expect_found(first + take, "setmaxnreg.inc", "which no other warp gives back", three_groups);
  expect_found(first + take + "setmaxnreg.dec.sync.aligned.u32 40;\n", "setmaxnreg.inc",
               "which no other warp gives back", three_groups);
  expect_found("setmaxnreg.dec.sync.aligned.u32 176;\n", "setmaxnreg.dec", "from 168 to 176", three_groups);
}

}  // namespace
}  // namespace teratron::emulated::ptx::testing
