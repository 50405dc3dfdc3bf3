// ld, st and cp.async.
#include <cstring>

#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/lane_functions.h"

namespace teratron::emulated::ptx {
namespace {

using Access = SharedMemory::Access;

template <class T>
T value_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Registers may be wider than what is loaded; its sign is extended, if it has one.
template <class T>
void write_loaded(Warp& warp, const Instruction& instruction, unsigned element, LaneMask mask, const Lanes<T>& values) {
  if (instruction.wide_data && sizeof(T) < 8) {
    Lanes<std::uint64_t> wide;
    for (unsigned lane = 0; lane < kLanes; ++lane) wide[lane] = static_cast<std::uint64_t>(values[lane]);
    write(warp, instruction.rows[element], mask, wide);
  } else {
    write(warp, instruction.rows[element], mask, values);
  }
}

template <class T, Space kSpace, unsigned kVector>
void load(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const Row address_row = instruction.rows[kVector];
  const Lanes<std::uint64_t> from = addresses(warp, address_row, instruction.wide_address, instruction.offset);
  std::array<Lanes<T>, kVector> values = {};
  if (kSpace == Space::kParameter && (address_row & kConstant) != 0) {  // one address for all
    const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    const std::byte* const bytes =
        block.access(kSpace, Access::kRead, from[lane], kVector * sizeof(T), warp, lane, instruction);
    for (unsigned i = 0; i < kVector; ++i) values[i].fill(value_at<T>(bytes + i * sizeof(T)));
  } else {
    for_each_lane(mask, [&](unsigned lane) {
      const std::byte* const bytes =
          block.access(kSpace, Access::kRead, from[lane], kVector * sizeof(T), warp, lane, instruction);
      for (unsigned i = 0; i < kVector; ++i) values[i][lane] = value_at<T>(bytes + i * sizeof(T));
    });
  }
  for (unsigned i = 0; i < kVector; ++i) write_loaded(warp, instruction, i, mask, values[i]);
}

template <class T, Space kSpace, unsigned kVector>
void store(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const Lanes<std::uint64_t> to = addresses(warp, instruction.rows[0], instruction.wide_address, instruction.offset);
  std::array<Lanes<T>, kVector> values;
  for (unsigned i = 0; i < kVector; ++i) {
    if (instruction.wide_data && sizeof(T) < 8) {
      const Lanes<std::uint64_t> wide = read<std::uint64_t>(warp, instruction.rows[1 + i]);
      for (unsigned lane = 0; lane < kLanes; ++lane) values[i][lane] = static_cast<T>(wide[lane]);
    } else {
      values[i] = read<T>(warp, instruction.rows[1 + i]);
    }
  }
  for_each_lane(mask, [&](unsigned lane) {
    std::byte* const bytes =
        block.access(kSpace, Access::kWrite, to[lane], kVector * sizeof(T), warp, lane, instruction);
    for (unsigned i = 0; i < kVector; ++i) std::memcpy(bytes + i * sizeof(T), &values[i][lane], sizeof(T));
  });
}

template <class T, Space kSpace, unsigned kVector>
void add_shape(Opcodes& opcodes, const std::string& shape) {
  Opcode opcode{.run = load<T, kSpace, kVector>, .widths = {kAnyWidth, kAnyWidth}, .operands = kVector + 1};
  opcodes["ld" + shape] = opcode;
  opcode.run = store<T, kSpace, kVector>;
  opcode.outputs = 0;
  if (kSpace != Space::kParameter) opcodes["st" + shape] = opcode;
}

template <class T, Space kSpace>
void add_accesses(Opcodes& opcodes, const std::string& space, const std::string& type) {
  add_shape<T, kSpace, 1>(opcodes, space + type);
  add_shape<T, kSpace, 2>(opcodes, space + ".v2" + type);
  add_shape<T, kSpace, 4>(opcodes, space + ".v4" + type);
}

template <class... T>
void add_types(Opcodes& opcodes) {
  const auto add = [&]<class Type>(Type, const std::string& type) {
    add_accesses<Type, Space::kGeneric>(opcodes, "", type);
    add_accesses<Type, Space::kGlobal>(opcodes, ".global", type);
    add_accesses<Type, Space::kShared>(opcodes, ".shared", type);
    add_accesses<Type, Space::kParameter>(opcodes, ".param", type);
  };
  (add(T{}, suffix<T>()), ...);
  (add(std::make_unsigned_t<T>{}, bits_suffix<T>()), ...);
}

void start_copy(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto to = addresses(warp, instruction.rows[0], false, instruction.offset);
  const auto from = addresses(warp, instruction.rows[1], true, instruction.source_offset);
  const auto bytes = read<std::uint32_t>(warp, instruction.rows[2]);
  const auto given = read<std::uint32_t>(warp, instruction.rows[3]);
  for_each_lane(mask, [&](unsigned lane) {
    block.start_copy(to[lane], from[lane], bytes[lane], given[lane], warp, lane, instruction);
  });
}

void commit_copies(Block& block, Warp& warp, const Instruction&, LaneMask mask) {
  for_each_lane(mask, [&](unsigned lane) { block.commit_copies(warp.thread(lane)); });
}

void wait_for_copies(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto groups = read<std::uint32_t>(warp, instruction.rows[0]);
  for_each_lane(mask, [&](unsigned lane) { block.wait_for_copies(groups[lane], warp, lane); });
}

}  // namespace

void add_memory_accesses(Opcodes& opcodes) {
  add_types<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(opcodes);
  add_types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(opcodes);
  for (const char* const space : {"", ".global", ".shared", ".param"}) {
    for (const char* const access : {"ld", "st"}) {
      for (const char* const shape : {"", ".v2", ".v4"}) {
        const std::string name = std::string(access) + space + shape;
        if (!opcodes.contains(name + ".b32")) continue;
        opcodes[name + ".f32"] = opcodes[name + ".b32"];
        opcodes[name + ".f64"] = opcodes[name + ".b64"];
      }
    }
  }
  const Opcode copy{.run = start_copy, .outputs = 0, .widths = {kAnyWidth, kAnyWidth, 4, 4}};
  opcodes["cp.async.cg.shared.global"] = opcodes["cp.async.ca.shared.global"] = copy;
  opcodes["cp.async.commit_group"] = {.run = commit_copies, .outputs = 0};
  opcodes["cp.async.wait_group"] = {.run = wait_for_copies, .outputs = 0};
}

}  // namespace teratron::emulated::ptx
