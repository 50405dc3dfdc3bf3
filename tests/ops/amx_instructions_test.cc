// The kernel's own AMX instructions, as compiled, against the emulation that tests use elsewhere, bit by bit. Where the
// processor has them, it runs them. Elsewhere each raises SIGILL, whose handler decodes it as Intel's manual encodes
// it, does on emulated tiles what it says, and goes on behind it: so numbers of tiles, addresses and steps are tested,
// and that the compiler has written to memory what the instructions read.
#include <gtest/gtest.h>

#include "ops/cpu/products/tile_kernels.h"
#include "ops/cpu/products/tile_unit.h"
#include "ops/trials/host.h"

#if defined(__x86_64__) && defined(__linux__)

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "ops/cpu/products/emulated_tiles.h"

namespace teratron::testing {
namespace {

// An instruction of three VEX bytes, an opcode, and operands.
struct Instruction {
  int prefix, opcode, mode, reg, rm, vvvv;
  std::uint64_t base = 0, step = 0;  // in memory, unless mode is 3
  std::int64_t length = 5;

  static std::optional<Instruction> at(const greg_t* registers);
};

std::uint64_t register_of(const greg_t* registers, int number) {
  constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(registers[kOrder[number]]);
}

std::optional<Instruction> Instruction::at(const greg_t* registers) {
  const auto address = static_cast<std::uint64_t>(registers[REG_RIP]);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(address);
  // VEX, no register 8 to 15 in `reg`, map 0F38; W and L are 0.
  if (bytes[0] != 0xc4 || (bytes[1] & 0x9f) != 0x82 || (bytes[2] & 0x84) != 0) return std::nullopt;
  const int x = bytes[1] & 0x40 ? 0 : 8, b = bytes[1] & 0x20 ? 0 : 8;
  Instruction made{.prefix = bytes[2] & 3,
                   .opcode = bytes[3],
                   .mode = bytes[4] >> 6,
                   .reg = bytes[4] >> 3 & 7,
                   .rm = bytes[4] & 7,
                   .vvvv = ~(bytes[2] >> 3) & 15};
  if (made.mode == 3) return made;
  int base = made.rm | b;
  bool has_base = true;
  if (made.rm == 4) {
    const std::uint8_t sib = bytes[made.length++];
    const int index = (sib >> 3 & 7) | x;
    if (index != 4) made.step = register_of(registers, index) << (sib >> 6);
    base = (sib & 7) | b;
    has_base = made.mode != 0 || (sib & 7) != 5;
  }
  const bool by_place = made.mode == 0 && made.rm == 5;
  const bool is_wide = made.mode == 2 || by_place || !has_base;
  std::int32_t displacement = 0;
  if (is_wide) {
    std::memcpy(&displacement, bytes + made.length, 4);
    made.length += 4;
  } else if (made.mode == 1) {
    displacement = static_cast<std::int8_t>(bytes[made.length++]);
  }
  if (by_place) {
    made.base = address + static_cast<std::uint64_t>(made.length);
  } else if (has_base) {
    made.base = register_of(registers, base);
  }
  made.base += static_cast<std::uint64_t>(std::int64_t{displacement});
  return made;
}

template <class T>
thread_local std::optional<EmulatedTiles<T>> tiles;
std::atomic<int> trapped = 0;

// visit<tile>() for a number that is known at run time.
template <class Visit>
void with_tile(int tile, const Visit& visit) {
  [&]<int... numbers>(std::integer_sequence<int, numbers...>) {
    ((tile == numbers ? visit.template operator()<numbers>() : void()), ...);
  }
  (std::make_integer_sequence<int, 8>());
}

template <class T, int c, int a, int b>
bool multiplied(const Instruction& instruction) {
  if (instruction.reg != c || instruction.rm != a || instruction.vvvv != b) return false;
  tiles<T>->template multiply<c, a, b>();
  return true;
}

// False if it is none of what the kernel uses.
template <class T>
bool execute(const Instruction& instruction) {
  constexpr int kNone = 0, kF3 = 2, kF2 = 3;
  const int prefix = instruction.prefix;
  const bool has_memory = instruction.mode != 3;
  auto* const memory = reinterpret_cast<void*>(instruction.base);
  const auto step = static_cast<std::int64_t>(instruction.step);
  if (instruction.opcode == 0x49 && prefix == kNone) {  // LDTILECFG or TILERELEASE
    tiles<T>.emplace();
    if (has_memory) tiles<T>->configure(*static_cast<const TileShapes*>(memory));
    return instruction.reg == 0 && instruction.vvvv == 0 && (has_memory || instruction.rm == 0);
  }
  if (instruction.opcode == 0x49 && prefix == kF2 && !has_memory && instruction.rm == 0) {
    with_tile(instruction.reg, [&]<int tile>() { tiles<T>->template zero<tile>(); });
    return instruction.vvvv == 0;
  }
  if (instruction.opcode == 0x4b && prefix == kF2 && has_memory && instruction.rm == 4) {
    with_tile(instruction.reg, [&]<int tile>() { tiles<T>->template load<tile>(memory, step); });
    return instruction.vvvv == 0;
  }
  if (instruction.opcode == 0x4b && prefix == kF3 && has_memory && instruction.rm == 4) {
    with_tile(instruction.reg, [&]<int tile>() { tiles<T>->template store<tile>(memory, step); });
    return instruction.vvvv == 0;
  }
  return instruction.opcode == 0x5c && prefix == (std::is_same_v<T, Bf16> ? kF3 : kF2) && !has_memory &&
         (multiplied<T, 0, 4, 6>(instruction) || multiplied<T, 1, 4, 7>(instruction) ||
          multiplied<T, 2, 5, 6>(instruction) || multiplied<T, 3, 5, 7>(instruction));
}

template <class T>
void on_illegal_instruction(int, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto instruction = Instruction::at(registers);
  try {
    if (instruction && execute<T>(*instruction)) {
      registers[REG_RIP] += instruction->length;
      ++trapped;
      return;
    }
  } catch (const InternalError& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::abort();
}

template <class T>
class AmxInstructions : public ::testing::Test {
 protected:
  static constexpr DType kDType = std::is_same_v<T, Bf16> ? DType::kBF16 : DType::kF16;

  void SetUp() override {
    if (has_tile_products(kDType)) return;
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction<T>;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before_);
    trapped = 0;
  }
  void TearDown() override {
    if (has_tile_products(kDType)) return;
    sigaction(SIGILL, &before_, nullptr);
    EXPECT_GT(trapped, 0);
  }
  struct sigaction before_ = {};
};
using Halves = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(AmxInstructions, Halves);

TYPED_TEST(AmxInstructions, GiveTheBitsOfEmulatedTiles) {
  Random random(31);
  for (int trial = 0; trial < 60; ++trial) {
    const std::int64_t m = 1 + random.below(100), n = 1 + random.below(100),
                       k = 1 + random.below(random.coin() ? 100 : 1100);
    std::vector<TypeParam> a, b;
    for (const double value : random.normals({m, k})) a.emplace_back(value);
    for (const double value : random.normals({k, n})) b.emplace_back(value);
    const Values before = random.normals({m, n});
    const bool a_transposed = random.coin(), b_transposed = random.coin(), accumulate = random.coin();
    const auto computed = [&](GemmProducts products) {
      std::vector<float> c(before.begin(), before.end());
      const Gemm product{.m = m,
                         .n = n,
                         .k = k,
                         .dtype = TestFixture::kDType,
                         .products = products,
                         .a = {a.data(), a_transposed ? m : k, a_transposed},
                         .b = {b.data(), b_transposed ? k : n, b_transposed},
                         .c = c.data(),
                         .c_stride = n,
                         .accumulate = accumulate};
      gemm(product, [](const GemmBlock&, const GemmSums&) {});
      return c;
    };
    ASSERT_EQ(computed(GemmProducts::kTiles), computed(GemmProducts::kEmulatedTiles))
        << "seed 31, trial " << trial << ": " << m << "x" << n << "x" << k << " transposed " << a_transposed
        << b_transposed << " accumulate " << accumulate;
  }
}

}  // namespace
}  // namespace teratron::testing

#endif
