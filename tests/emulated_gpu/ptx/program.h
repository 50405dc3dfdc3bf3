// A kernel's PTX in the form that is executed: an instruction has a function that does it for the 32 lanes of a warp at
// once, and the rows of its operands. A row holds a value of every lane: of a register, or of a constant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace teratron::emulated::ptx {

constexpr unsigned kLanes = 32;
using LaneMask = std::uint32_t;
constexpr LaneMask kAllLanes = 0xffffffffU;

class Block;
struct Warp;
struct Instruction;
using Handler = void (*)(Block&, Warp&, const Instruction&, LaneMask);

// Offset in units of 4 bytes, of the warp's registers or, with kConstant, of the program's constants. Values of up to 4
// bytes take 32 units, those of 8 bytes take 64.
using Row = std::uint32_t;
constexpr Row kConstant = 1U << 31, kNoRow = ~Row{0};

enum class Kind : std::uint8_t {
  kPlain,
  kBranch,
  kReturn,
  kBlockBarrier,  // bar.sync
  kWarpBarrier,   // bar.warp.sync, of the lanes that its mask names
  kExchange,      // shfl.sync, of the lanes that its mask names
  kWholeWarp,     // mma, ldmatrix: of all 32 lanes
  kWait           // mbarrier.try_wait
};

// Products of warpgroups use their registers until they are waited for.
enum class Role : std::uint8_t { kNone, kProduct };

constexpr unsigned kUsualOperands = 14, kMostOperands = 250;  // of mma.m16n8k16; of any

struct Instruction {
  Handler run = nullptr;  // of kPlain, kExchange and kWholeWarp
  Kind kind = Kind::kPlain;
  Role role = Role::kNone;
  bool guard_negated = false;
  bool wide_data = false;                  // of ld and st: their registers have 8 bytes
  bool wide_address = false;               // the register of the address has 8 bytes
  std::uint8_t outputs = 0, operands = 0;  // of `rows`; operands counts both
  Row guard = kNoRow;                      // predicate
  std::uint32_t target = 0;                // of a branch: an instruction
  int line = 0;                            // of the PTX file
  std::int64_t offset = 0;                 // of the address; of mov from a special register: which
  std::int64_t source_offset = 0;          // of cp.async
  std::array<Row, kUsualOperands> rows{};  // as written, outputs first
  std::vector<Row> more_rows = {};         // beyond those

  Row& row(unsigned i) { return i < kUsualOperands ? rows[i] : more_rows[i - kUsualOperands]; }
  Row row(unsigned i) const { return i < kUsualOperands ? rows[i] : more_rows[i - kUsualOperands]; }
  void add_row(Row added) {
    if (operands >= kUsualOperands) more_rows.push_back(0);
    row(operands++) = added;
  }
};

struct Parameter {
  std::size_t offset = 0, bytes = 0, alignment = 1;
};

struct Program {
  std::string kernel;  // demangled, for messages
  std::string file;
  std::vector<Instruction> code;
  std::vector<std::uint32_t> constants;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::size_t register_units = 0;  // of a warp
  std::size_t static_shared = 0;   // bytes
  std::size_t dynamic_shared_at = 0;
  unsigned most_threads = 1024;  // of a block: __launch_bounds__
  bool has_products = false;     // of warpgroups
};

}  // namespace teratron::emulated::ptx
