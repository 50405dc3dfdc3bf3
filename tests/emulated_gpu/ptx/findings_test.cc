// Findings of the interpreter, in kernels that have one fault and do nothing else. Messages name the kernel, the line,
// the thread.
#include "emulated_gpu/ptx/findings.h"

namespace teratron::emulated::ptx::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const WrittenLaunch kTwoWarps{.in = {}, .threads = 64, .dynamic_shared = 512};
// %r2 is the address of the thread's 8 bytes of shared memory, %r3 that of the next thread's, of 64.
const std::string kShared =
    "mov.u32 %r4, dynamic; shl.b32 %r5, %r1, 3; add.u32 %r2, %r4, %r5;\n"
    "add.u32 %r6, %r1, 1; and.b32 %r6, %r6, 63; shl.b32 %r6, %r6, 3; add.u32 %r3, %r4, %r6;\n";

TEST(PtxFindings, AccessesOutsideAllocations) {
  expect_fine("ld.global.u64 %rd6, [%rd1]; st.global.u64 [%rd2], %rd6;");
  expect_finding("ld.global.u64 %rd6, [%rd1+8];", 0, 31, "reads 8 bytes of global memory at");
  expect_finding("\nst.global.u32 [%rd2+-4], %r1;", 1, 0, "outside every allocation");
  expect_finding("mov.u64 %rd6, 0; ld.u32 %r2, [%rd6];", 0, 0, "outside every allocation");
  expect_finding("ld.param.u64 %rd6, [in+16];", 0, 0, "beyond their end");
}

TEST(PtxFindings, AddressesThatAreNotAligned) {
  expect_finding("ld.global.u64 %rd6, [%rd1+4];", 0, 0, "misaligned address");
  expect_finding("ld.global.v2.u64 {%rd6, %rd7}, [%rd3+8];", 0, 0, "misaligned address");
  expect_finding(kShared + "st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};", 2, 1, "misaligned address", kTwoWarps);
  expect_finding(kShared + "cp.async.cg.shared.global [%r2], [%rd3], 16;", 2, 1, "misaligned address", kTwoWarps);
  expect_finding(kShared + "cp.async.ca.shared.global [%r2], [%rd3+4], 8;", 2, 0, "from a misaligned", kTwoWarps);
}

TEST(PtxFindings, SharedMemoryBeyondItsEnd) {
  expect_finding(kShared + "ld.shared.u64 %rd6, [%r2+8];", 2, 63, "of which the block has 512", kTwoWarps);
  const WrittenLaunch fixed{.in = {}, .shared = ".shared .align 4 .b8 own[128];"};
  expect_fine("mov.u32 %r4, own; shl.b32 %r5, %r1, 2; add.u32 %r2, %r4, %r5; st.shared.u32 [%r2], %r1;", fixed);
  const WrittenLaunch smaller{.in = {}, .shared = ".shared .align 4 .b8 own[124];"};
  expect_finding("mov.u32 %r4, own; shl.b32 %r5, %r1, 2; add.u32 %r2, %r4, %r5; st.shared.u32 [%r2], %r1;", 0, 31,
                 "of which the block has 124", smaller);
}

TEST(PtxFindings, RacesBetweenWarpsThatNoBarrierSeparates) {
  const std::string write = kShared + "st.shared.u64 [%r2], %rd5;\n", read = "ld.shared.u64 %rd6, [%r3];\n";
  expect_fine(write + "bar.sync 0;\n" + read, kTwoWarps);
  expect_finding(write + "\n" + read, 4, 0, "reads shared memory that thread 1 wrote", kTwoWarps);
  expect_finding(write + "bar.warp.sync -1;\n" + read, 2, 32, "writes shared memory that thread 31 read", kTwoWarps);
  expect_finding(write + "bar.sync 0;\n" + read + "st.shared.u8 [%r2+7], %r1;", 5, 1, "that thread 0 read", kTwoWarps);
  expect_fine(write + "bar.sync 0;\n" + read + "bar.sync 0;\nst.shared.u8 [%r2+7], %r1;", kTwoWarps);
  expect_finding(kShared + "st.shared.u32 [dynamic], %r1;", 2, 1, "writes shared memory that thread 0 wrote",
                 kTwoWarps);
}

TEST(PtxFindings, RacesBetweenLanesOfAWarp) {
  const std::string write = kShared + "st.shared.u64 [%r2], %rd5;\n";
  const std::string read = "xor.b32 %r7, %r2, 8; ld.shared.u8 %r8, [%r7+3];\n";
  const WrittenLaunch warp{.in = {}, .dynamic_shared = 256};
  expect_fine(write + "bar.warp.sync -1;\n" + read, warp);
  expect_finding(write + read, 3, 0, "reads shared memory that thread 1 wrote", warp);
  expect_fine(write + "bar.warp.sync -1;\n" + read + "bar.warp.sync -1;\nst.shared.u64 [%r2], %rd5;", warp);
  expect_finding(write + "bar.warp.sync -1;\n" + read + "st.shared.u64 [%r2], %rd5;", 5, 0, "that thread 1 read", warp);
  expect_finding(write + "bar.warp.sync -1;\nld.shared.u8 %r8, [dynamic];\nst.shared.u64 [%r2], %rd5;", 5, 0,
                 "that several threads read", warp);
}

TEST(PtxFindings, CopiesThatAreReadBeforeTheyAreWaitedFor) {
  const std::string copy = kShared + "cp.async.ca.shared.global [%r2], [%rd1], 8;\ncp.async.commit_group;\n";
  const std::string read = "ld.shared.u64 %rd6, [%r2];\n";
  expect_fine(copy + "cp.async.wait_group 0;\n" + read, kTwoWarps);
  expect_finding(copy + read, 4, 0, "thread 0 copies (cp.async) before", kTwoWarps);
  expect_finding(copy + "cp.async.wait_group 1;\n" + read, 5, 0, "before the copy was waited for", kTwoWarps);
  const std::string not_committed = kShared + "cp.async.ca.shared.global [%r2], [%rd1], 8;\n";
  expect_finding(not_committed + "cp.async.wait_group 0;\n" + read, 4, 0, "before the copy was waited for", kTwoWarps);
  const std::string others = "ld.shared.u64 %rd6, [%r3];\n";
  expect_finding(copy + "cp.async.wait_group 0;\n" + others, 5, 0, "that thread 1 wrote", kTwoWarps);
  expect_fine(copy + "cp.async.wait_group 0;\nbar.sync 0;\n" + others, kTwoWarps);
  expect_finding(kShared + "cp.async.ca.shared.global [%r2], [%rd1+8], 8;", 2, 63, "outside every allocation",
                 kTwoWarps);
}

TEST(PtxFindings, LanesThatAreMissing) {
  const std::string half = "setp.lt.u32 %p1, %r1, 16;\n";
  expect_finding(half + "@%p1 bra $on;\nret;\n$on:\nshfl.sync.bfly.b32 %r4|%p2, %r1, 16, 31, -1;", 4, 0,
                 "of a lane that is not there");
  expect_finding(half + "@!%p1 bra $on;\nshfl.sync.bfly.b32 %r4|%p2, %r1, 1, 31, -1;\n$on:\nbar.warp.sync -1;", 2, 0,
                 "waits for lanes of its warp that never come");
  expect_finding("shfl.sync.bfly.b32 %r4|%p2, %r1, 1, 31, 15;", 0, 4, "its mask of lanes");
  const std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [dynamic];";
  expect_finding(half + "@%p1 bra $on;\nret;\n$on:\n" + load, 4, 0, "lanes of the warp are missing", kTwoWarps);
}

TEST(PtxFindings, BarriersThatOthersNeverComeTo) {
  expect_fine("bar.sync 0;\nbar.sync 0;", kTwoWarps);
  expect_finding("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $on;\nbar.sync 0;\nbra.uni $end;\n$on:\nbar.sync 0;\n$end:\n", 2,
                 32, "wait at different barriers", kTwoWarps);
  expect_finding("setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $on;\nbar.sync 0;\n$on:\nbar.warp.sync -1;\n", 2, 0,
                 "waits for lanes of its warp that never come", kTwoWarps);
  expect_fine("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $on;\nret;\n$on:\nbar.sync 0;\n", kTwoWarps);
}

TEST(PtxFindings, IntegersDividedByZeroAndBlocksWithoutEnd) {
  expect_finding("sub.u32 %r2, %r1, 5;\ndiv.u32 %r4, %r1, %r2;", 1, 5, "divides an integer by zero");
  expect_finding("sub.u32 %r2, %r1, 7;\nrem.s32 %r4, %r1, %r2;", 1, 7, "divides an integer by zero");
  expect_finding("$on:\nbra.uni $on;", 1, 0, "does not end");
}

TEST(PtxFindings, KernelsAndLaunchesThatCannotBe) {
  const auto expect_refused = [](const std::string& body, const std::string& what, const WrittenLaunch& launch = {}) {
    EXPECT_THAT([&] { run_written(body, launch); }, ThrowsMessage<InternalError>(HasSubstr(what))) << body;
  };
  expect_refused("lg2.approx.f32 %f1, %f2;", "written.ptx:22: opcodes.h has no instruction lg2.approx.f32");
  expect_refused("add.s32 %r1, %rd1, 2;", "a register of another size");
  expect_refused("add.s32 %x1, %r1, 2;", "%x1 is not declared");
  expect_refused("bra.uni $nowhere;", "there is no label $nowhere");
  expect_refused("add.s32 %r1, %r2;", "operands that add.s32 does not have here");
  expect_refused("bar.sync 1;", "operands that bar.sync does not have here");
  expect_refused("", "1 to 64 threads a block", {.in = {}, .threads = 96});
  expect_refused("mov.u32 %r2, dynamic;", "as much shared memory as there is", {.in = {}, .dynamic_shared = 228 << 10});
}

TEST(PtxFindings, NamesOfUnnamedNamespacesDoNotMatter) {
  EXPECT_EQ(common_name("_ZN8teratron4cuda53_GLOBAL__N__7925bcb2_20_attention_forward_cu_362a5d296attendIfEEvT_"),
            common_name("_ZN8teratron4cuda12_GLOBAL__N_16attendIfEEvT_"));
  EXPECT_EQ(common_name("_ZN8teratron4cuda6attendIfEEvT_"), "_ZN8teratron4cuda6attendIfEEvT_");
  EXPECT_EQ(common_name("main"), "main");
}

}  // namespace
}  // namespace teratron::emulated::ptx::testing
