#include <algorithm>
#include <numeric>
#include <queue>

#include "emulated_gpu/ptx/decoder.h"

namespace teratron::emulated::ptx {
namespace {

// Instructions from the first to the last that names the register.
struct Range {
  std::uint32_t first = ~0U, last = 0;
  bool begins_with_read = false;
};

template <class Visit>
void for_each_register(Instruction& instruction, const Visit& visit) {
  const bool guarded = instruction.guard != kNoRow;
  if (guarded) visit(instruction.guard, false);
  for (unsigned i = instruction.outputs; i < instruction.operands; ++i) {
    if ((instruction.row(i) & kConstant) == 0) visit(instruction.row(i), false);
  }
  for (unsigned i = 0; i < instruction.outputs; ++i) {  // with a guard, some lanes keep what was there
    if ((instruction.row(i) & kConstant) == 0) visit(instruction.row(i), !guarded);
  }
}

// Those of products live all the time: a product may still use them where no instruction names them any more, and what
// was done to them before it matters.
std::vector<Range> ranges_of(Program& program, std::size_t registers) {
  std::vector<Range> ranges(registers);
  const auto end = static_cast<std::uint32_t>(program.code.size());
  for (std::uint32_t at = 0; at < program.code.size(); ++at) {
    for_each_register(program.code[at], [&](Row number, bool written) {
      Range& range = ranges[number];
      if (range.first == ~0U) range = {at, at, !written};
      range.last = at;
    });
  }
  for (Instruction& product : program.code) {
    if (product.role != Role::kProduct) continue;
    for_each_register(product, [&](Row number, bool) { ranges[number] = {0, end, true}; });
  }
  return ranges;
}

// A register that lives into a loop lives until its end, since the loop may begin again.
void extend_over_loops(const Program& program, std::vector<Range>& ranges) {
  std::vector<Range> loops;
  for (std::uint32_t at = 0; at < program.code.size(); ++at) {
    const Instruction& instruction = program.code[at];
    if (instruction.kind == Kind::kBranch && instruction.target <= at) loops.push_back({instruction.target, at});
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Range& loop : loops) {
      for (Range& range : ranges) {
        if (range.last < loop.first || range.first > loop.last) continue;
        const bool lives_in = range.first < loop.first || range.begins_with_read;
        if (!lives_in) continue;
        const Range longer{std::min(range.first, loop.first), std::max(range.last, loop.last), range.begins_with_read};
        changed = changed || longer.first != range.first || longer.last != range.last;
        range = longer;
      }
    }
  }
}

}  // namespace

void assign_rows(Program& program, const std::vector<std::uint8_t>& widths) {
  std::vector<Range> ranges = ranges_of(program, widths.size());
  extend_over_loops(program, ranges);
  std::vector<std::uint32_t> order(widths.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return ranges[a].first < ranges[b].first; });

  using End = std::pair<std::uint32_t, std::uint32_t>;  // instruction, register
  std::priority_queue<End, std::vector<End>, std::greater<>> in_use;
  std::vector<Row> rows(widths.size(), kNoRow), free_narrow, free_wide;
  for (const std::uint32_t number : order) {
    const Range& range = ranges[number];
    if (range.first == ~0U) break;  // never named
    for (; !in_use.empty() && in_use.top().first < range.first; in_use.pop()) {
      const std::uint32_t done = in_use.top().second;
      (widths[done] == 8 ? free_wide : free_narrow).push_back(rows[done]);
    }
    std::vector<Row>& free = widths[number] == 8 ? free_wide : free_narrow;
    if (free.empty()) {
      free.push_back(static_cast<Row>(program.register_units));
      program.register_units += widths[number] == 8 ? 2 * kLanes : kLanes;
    }
    rows[number] = free.back();
    free.pop_back();
    in_use.emplace(range.last, number);
  }
  for (Instruction& instruction : program.code) {
    if (instruction.guard != kNoRow) instruction.guard = rows[instruction.guard];
    for (unsigned i = 0; i < instruction.operands; ++i) {
      if (Row& row = instruction.row(i); (row & kConstant) == 0) row = rows[row];
    }
  }
}

}  // namespace teratron::emulated::ptx
