// Instructions by themselves, beside what the PTX ISA says of them in C++. That they are right together is seen where
// the kernels agree with the reference back end.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>

#include "base/philox.h"
#include "emulated_gpu/ptx/written_kernel.h"

namespace teratron::emulated::ptx::testing {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Words of 64 random bits, every third one short, so that both halves meet their edges.
std::vector<u64> random_words(std::uint64_t seed, std::size_t count = 32) {
  RandomSequence random(RandomStream{.seed = seed});
  std::vector<u64> words;
  for (std::size_t i = 0; i < count; ++i) {
    const u64 high = random.next_u32(), low = random.next_u32();
    words.push_back(i % 3 == 0 ? low % 70 | high % 70 << 32 : high << 32 | low);
  }
  return words;
}

// Kernel of one instruction: of two operands of 32 bits, %r2 (the word's low half) and %r3, the result %r4.
template <class Expected>
void expect_of_pairs(const std::string& instruction, const Expected& expected) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::vector<u64> words = random_words(seed);
    const auto out = run_written(
        "ld.global.v2.u32 {%r2, %r3}, [%rd1];\n" + instruction + "\nst.global.u32 [%rd2], %r4;", {.in = words});
    for (std::size_t i = 0; i < words.size(); ++i) {
      const u32 a = static_cast<u32>(words[i]), b = static_cast<u32>(words[i] >> 32);
      ASSERT_EQ(static_cast<u32>(out[i]), static_cast<u32>(expected(a, b))) << instruction << " of " << a << ", " << b;
    }
  }
}

std::int64_t as_signed(u32 value) { return static_cast<std::int32_t>(value); }

TEST(PtxInstructions, OfIntegersWrapAroundAndKnowTheirSigns) {
  expect_of_pairs("add.s32 %r4, %r2, %r3;", [](u32 a, u32 b) { return a + b; });
  expect_of_pairs("sub.s32 %r4, %r2, %r3;", [](u32 a, u32 b) { return a - b; });
  expect_of_pairs("mad.lo.s32 %r4, %r2, %r3, 7;", [](u32 a, u32 b) { return a * b + 7; });
  expect_of_pairs("mul.hi.u32 %r4, %r2, %r3;", [](u32 a, u32 b) { return u64{a} * b >> 32; });
  expect_of_pairs("mul.hi.s32 %r4, %r2, %r3;", [](u32 a, u32 b) { return as_signed(a) * as_signed(b) >> 32; });
  expect_of_pairs("min.s32 %r4, %r2, %r3;", [](u32 a, u32 b) { return std::min(as_signed(a), as_signed(b)); });
  expect_of_pairs("max.u32 %r4, %r2, %r3;", [](u32 a, u32 b) { return std::max(a, b); });
  expect_of_pairs("or.b32 %r5, %r3, 1; div.s32 %r4, %r2, %r5;",
                  [](u32 a, u32 b) { return as_signed(a) / as_signed(b | 1); });
  expect_of_pairs("or.b32 %r5, %r3, 1; rem.u32 %r4, %r2, %r5;", [](u32 a, u32 b) { return a % (b | 1); });
  expect_of_pairs("cvt.s32.s8 %r4, %r2;", [](u32 a, u32) { return static_cast<std::int8_t>(a); });
  expect_of_pairs("cvt.u16.u32 %rs1, %r2; cvt.s64.s16 %rd6, %rs1; cvt.u32.u64 %r4, %rd6;",
                  [](u32 a, u32) { return static_cast<std::int16_t>(a); });
  expect_of_pairs("cvt.u64.u32 %rd6, %r2; cvt.s64.s32 %rd7, %rd6; shr.s64 %rd7, %rd7, 8; cvt.u32.u64 %r4, %rd7;",
                  [](u32 a, u32) { return as_signed(a) >> 8; });
  expect_of_pairs("setp.lt.s32 %p1, %r2, %r3; selp.b32 %r4, 5, %r2, %p1;",
                  [](u32 a, u32 b) { return as_signed(a) < as_signed(b) ? 5 : a; });
  expect_of_pairs("setp.lt.u32 %p1, %r2, %r3; mov.u32 %r4, 3; @!%p1 mov.u32 %r4, %r3;",
                  [](u32 a, u32 b) { return a < b ? 3 : b; });
}

TEST(PtxInstructions, OfBitsEndWhereTheTypeEnds) {
  expect_of_pairs("shl.b32 %r4, %r2, %r3;", [](u32 a, u32 b) { return b < 32 ? a << b : 0; });
  expect_of_pairs("shr.u32 %r4, %r2, %r3;", [](u32 a, u32 b) { return b < 32 ? a >> b : 0; });
  expect_of_pairs("shr.s32 %r4, %r2, %r3;", [](u32 a, u32 b) { return as_signed(a) >> std::min(b, 31U); });
  expect_of_pairs("not.b32 %r5, %r2; xor.b32 %r4, %r5, %r3;", [](u32 a, u32 b) { return ~a ^ b; });
  expect_of_pairs("bfi.b32 %r4, %r2, %r3, 5, 9;", [](u32 a, u32 b) { return (b & ~0x3fe0U) | (a & 0x1ff) << 5; });
  expect_of_pairs("bfi.b32 %r4, %r2, %r3, 28, 9;", [](u32 a, u32 b) { return (b & 0x0fffffffU) | a << 28; });
  expect_of_pairs("prmt.b32 %r4, %r2, %r3, 0x9170;", [](u32 a, u32 b) {
    const u32 sign = (a >> 15 & 1) != 0 ? 0xff : 0;
    return sign << 24 | (a >> 8 & 0xff) << 16 | (b >> 24) << 8 | (a & 0xff);
  });
  expect_of_pairs("mov.b32 {%rs1, %rs2}, %r2; mov.b32 %r4, {%rs2, %rs1};",
                  [](u32 a, u32) { return a << 16 | a >> 16; });
}

float as_float(u32 bits) { return std::bit_cast<float>(bits); }

// Numbers of every size, NaN and infinities.
template <class Expected>
void expect_of_floats(const std::string& instruction, const Expected& expected) {
  const std::string moves = "mov.b32 %f1, %r2; mov.b32 %f2, %r3;\n" + instruction + "\nmov.b32 %r4, %f3;";
  expect_of_pairs(moves, [&](u32 a, u32 b) {
    const float result = expected(as_float(a), as_float(b));
    return std::bit_cast<u32>(result);
  });
}

TEST(PtxInstructions, OfFloatsRoundAsTheySay) {
  const auto rounded_down = [](float a, float b) {
    const int before = std::fegetround();
    std::fesetround(FE_DOWNWARD);
    volatile float x = a, y = b;
    const float result = std::fma(x, y, 12582913.0F);
    std::fesetround(before);
    return std::isnan(result) ? std::fma(a, b, 12582913.0F) : result;
  };
  expect_of_floats("fma.rm.f32 %f3, %f1, %f2, 0f4B400001;", rounded_down);
  expect_of_floats("fma.rn.f32 %f3, %f1, %f2, %f1;", [](float a, float b) { return std::fma(a, b, a); });
  expect_of_floats("div.rn.f32 %f3, 0f3F800000, %f2;", [](float, float b) { return 1 / b; });
  expect_of_floats("copysign.f32 %f3, %f1, %f2;", [](float a, float b) { return std::copysign(b, a); });
  expect_of_floats("cvt.sat.f32.f32 %f3, %f1;", [](float a, float) { return a > 0 ? std::min(a, 1.0F) : 0; });
  expect_of_floats("setp.ltu.f32 %p1, %f1, %f2; selp.f32 %f3, 0f3F800000, 0f00000000, %p1;",
                   [](float a, float b) { return a >= b ? 0.0F : 1.0F; });
  expect_of_floats("setp.nan.f32 %p1, %f1, %f2; selp.f32 %f3, 0f3F800000, 0f00000000, %p1;",
                   [](float a, float b) { return std::isunordered(a, b) ? 1.0F : 0.0F; });
  expect_of_floats("cvt.f64.f32 %fd1, %f1; cvt.rn.f32.f64 %f3, %fd1;", [](float a, float) { return a; });
}

TEST(PtxInstructions, OfFloatsPreferNumbersToNaN) {
  const std::string body =
      "mov.f32 %f1, 0f7FC00000; mov.f32 %f2, 0fC0000000; max.f32 %f3, %f1, %f2; min.f32 %f4, %f2, %f1;\n"
      "mov.f32 %f5, 0f80000000; max.f32 %f6, %f5, 0f00000000; add.f32 %f7, %f3, %f4;\n"
      "st.global.v2.f32 [%rd2], {%f7, %f6};";
  const u64 out = run_written(body).front();
  EXPECT_EQ(as_float(static_cast<u32>(out)), -4.0F);
  EXPECT_EQ(out >> 32, 0U) << "+0 is more than -0";
}

TEST(PtxInstructions, ShuffleByLaneWithinSegments) {
  const auto lanes = [](const std::string& instruction) {
    return run_written(instruction + " selp.u32 %r5, 1, 0, %p1; st.global.v2.u32 [%rd2], {%r4, %r5};");
  };
  const auto across = lanes("shfl.sync.bfly.b32 %r4|%p1, %r1, 5, 31, -1;");
  const auto down = lanes("shfl.sync.down.b32 %r4|%p1, %r1, 3, 0x181f, -1;");  // segments of 8
  const auto up = lanes("shfl.sync.up.b32 %r4|%p1, %r1, 3, 0x1800, -1;");
  const auto index = lanes("shfl.sync.idx.b32 %r4|%p1, %r1, 2, 0x181f, -1;");
  for (u32 lane = 0; lane < 32; ++lane) {
    const auto expect = [&](u64 out, u32 from, bool found) {
      EXPECT_EQ(static_cast<u32>(out), found ? from : lane) << lane;
      EXPECT_EQ(out >> 32, found ? 1U : 0U) << lane;
    };
    expect(across[lane], lane ^ 5, true);
    expect(down[lane], lane + 3, lane % 8 + 3 < 8);
    expect(up[lane], lane - 3, lane % 8 >= 3);
    expect(index[lane], lane / 8 * 8 + 2, true);
  }
}

// Small integers, whose products of matrices are exact: c[i, j] = sum of a[i, k] b[k, j], in the PTX ISA's layout.
TEST(PtxInstructions, MultiplyMatricesOfLanes) {
  const auto a = [](u32 row, u32 column) { return static_cast<float>((row * 5 + column * 3) % 7); };
  const auto b = [](u32 row, u32 column) { return static_cast<float>((row + column * 2) % 5) - 2; };
  std::string body = "mov.u32 %r2, 0;\n";
  // Each lane computes its elements from their places; bf16 of a small integer is the high half of its fp32.
  const auto element = [](const std::string& to, const std::string& number, int divisor, int minus) {
    return fmt::format("rem.u32 %r30, {}, {}; cvt.rn.f32.u32 %f1, %r30; sub.f32 %f1, %f1, 0f{:08X}; mov.b32 {}, %f1;\n",
                       number, divisor, std::bit_cast<u32>(static_cast<float>(minus)), to);
  };
  body += "shr.u32 %r3, %r1, 2; and.b32 %r4, %r1, 3; shl.b32 %r4, %r4, 1;\n";  // group, twice the place in it
  for (u32 i = 0; i < 6; ++i) {
    const bool of_a = i < 4;
    for (u32 half = 0; half < 2; ++half) {
      const u32 k = (of_a ? i / 2 : i - 4) * 8 + half, row = of_a ? i % 2 * 8 : 0;
      body += of_a ? fmt::format(
                         "add.u32 %r5, %r3, {}; mul.lo.u32 %r5, %r5, 5; add.u32 %r6, %r4, {}; "
                         "mad.lo.u32 %r7, %r6, 3, %r5;\n",
                         row, k)
                   : fmt::format("add.u32 %r5, %r4, {}; mad.lo.u32 %r7, %r3, 2, %r5;\n", k);
      body += element(half == 0 ? "%r8" : "%r9", "%r7", of_a ? 7 : 5, of_a ? 0 : 2);
    }
    body += fmt::format("shr.u32 %r8, %r8, 16; and.b32 %r9, %r9, 0xFFFF0000; or.b32 %r{}, %r8, %r9;\n", 10 + i);
  }
  body +=
      "mov.f32 %f2, 0f40400000;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7}, {%r10, %r11, %r12, %r13}, "
      "{%r14, %r15}, {%f2, %f2, %f2, %f2};\n";
  for (const u32 half : {0U, 1U}) {
    const auto out =
        run_written(body + fmt::format("st.global.v2.f32 [%rd2], {{%f{}, %f{}}};", 4 + 2 * half, 5 + 2 * half));
    for (u32 lane = 0; lane < 32; ++lane) {
      for (u32 e = 0; e < 2; ++e) {
        const u32 row = lane / 4 + 8 * half, column = 2 * (lane % 4) + e;
        float expected = 3;
        for (u32 k = 0; k < 16; ++k) expected += a(row, k) * b(k, column);
        EXPECT_EQ(as_float(static_cast<u32>(out[lane] >> (32 * e))), expected) << row << ", " << column;
      }
    }
  }
}

// Byte n of shared memory is n; lane l asks for row l, 16 bytes each.
TEST(PtxInstructions, LoadMatricesAndTheirTransposes) {
  const std::string fill =
      "mov.u32 %r2, dynamic; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; mov.u32 %r4, 0;\n"
      "$fill:\nadd.u32 %r5, %r2, %r4; add.u32 %r6, %r3, %r4; st.shared.u8 [%r5], %r6; add.u32 %r4, %r4, 1;\n"
      "setp.lt.u32 %p1, %r4, 16; @%p1 bra $fill;\nbar.warp.sync -1;\n";
  for (const bool transposed : {false, true}) {
    for (u32 matrix = 0; matrix < 4; ++matrix) {
      const std::string body =
          fill + fmt::format(
                     "ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r2];\n"
                     "st.global.u32 [%rd2], %r{};",
                     transposed ? ".trans" : "", 10 + matrix);
      const auto out = run_written(body, {.dynamic_shared = 512});
      for (u32 lane = 0; lane < 32; ++lane) {
        for (u32 e = 0; e < 2; ++e) {
          const u32 outer = lane / 4, inner = 2 * (lane % 4) + e;
          const u32 row = 8 * matrix + (transposed ? inner : outer), column = transposed ? outer : inner;
          const u32 first = (16 * row + 2 * column) & 0xff;
          EXPECT_EQ(out[lane] >> (16 * e) & 0xffff, first | (first + 1) << 8) << lane;
        }
      }
    }
  }
}

// Lanes that leave a loop at different rounds wait behind it for the others.
TEST(PtxInstructions, BranchEachLaneByItself) {
  const auto out = run_written(
      "mov.u32 %r2, 0; mov.u32 %r3, 0;\n$loop:\nsetp.ge.u32 %p1, %r2, %r1; @%p1 bra $done;\n"
      "add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1; bra.uni $loop;\n$done:\n"
      "shfl.sync.idx.b32 %r4|%p2, %r3, 31, 31, -1; st.global.v2.u32 [%rd2], {%r3, %r4};");
  for (u32 lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], u64{31 * 30 / 2} << 32 | (lane == 0 ? 0 : lane * (lane - 1) / 2));
  }
}

}  // namespace
}  // namespace teratron::emulated::ptx::testing
