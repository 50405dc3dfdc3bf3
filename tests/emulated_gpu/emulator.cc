#include "emulated_gpu/emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace teratron::emulated {

thread_local Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr std::size_t kStack = std::size_t{64} << 10;
constexpr unsigned kWarp = 32, kMostThreads = 1024;
constexpr std::size_t kMostShared = 227 << 10;  // of a block on Hopper

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes, given;
  void run() const {
    std::memcpy(to, from, given);
    std::memset(static_cast<std::byte*>(to) + given, 0, bytes - given);
  }
};

// Lives as long as its host thread, and runs one thread of a block after another.
struct Fiber {
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStack);
  ucontext_t start{};
  jmp_buf resume{};
  bool begun = false;
  State state = State::kDone;
  Dim3 thread;
  unsigned number = 0;
  std::deque<std::vector<Copy>> copies;  // by group; the last one is not committed
  unsigned exchanges = 0;                // of values with its warp
};

struct Machine {
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber* running = nullptr;
  jmp_buf scheduler{};
  const std::function<void()>* body = nullptr;
  unsigned threads = 0;  // of the block
  std::vector<std::byte> exchange, shared;
  std::uint64_t blocks = 0;
  std::string fault;  // of a thread, which ends the launch
};

Machine& machine() {
  thread_local Machine one;
  return one;
}

// Neither touches the signal mask, as swapcontext would.
void leave() {
  Machine& m = machine();
  if (_setjmp(m.running->resume) == 0) _longjmp(m.scheduler, 1);
}

[[noreturn]] void end_launch(std::string fault) {
  Machine& m = machine();
  m.fibers.clear();  // they stand in the middle of a kernel
  m.fault.clear();
  throw InternalError(std::move(fault));
}

void fiber_main() {
  while (true) {
    (*machine().body)();
    machine().running->state = State::kDone;
    leave();
  }
}

void enter(Fiber& fiber) {
  Machine& m = machine();
  m.running = &fiber;
  threadIdx = fiber.thread;
  if (_setjmp(m.scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.resume, 1);
  fiber.begun = true;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = kStack;
  makecontext(&fiber.start, fiber_main, 0);
  setcontext(&fiber.start);
}

// All of [begin, end) that are not done wait there: they go on.
bool release(unsigned begin, unsigned end, State barrier) {
  Machine& m = machine();
  bool any = false;
  for (unsigned i = begin; i < end; ++i) {
    const State state = m.fibers[i]->state;
    if (state == State::kDone) continue;
    if (state != barrier) return false;
    any = true;
  }
  for (unsigned i = begin; any && i < end; ++i) {
    if (m.fibers[i]->state == barrier) m.fibers[i]->state = State::kReady;
  }
  return any;
}

// Until all its threads wait for the block or are done.
bool run_warp(unsigned begin) {
  Machine& m = machine();
  bool any = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned i = begin; i < std::min(begin + kWarp, m.threads); ++i) {
      if (m.fibers[i]->state != State::kReady) continue;
      enter(*m.fibers[i]);
      if (!m.fault.empty()) end_launch(m.fault);
      moved = true;
    }
    moved = release(begin, std::min(begin + kWarp, m.threads), State::kAtWarpBarrier) || moved;
    any = any || moved;
  }
  return any;
}

// One warp runs as far ahead of the others as barriers let it, then the next.
void run_block() {
  Machine& m = machine();
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned begin = 0; begin < m.threads; begin += kWarp) moved = run_warp(begin) || moved;
    moved = release(0, m.threads, State::kAtBlockBarrier) || moved;
  }
  for (unsigned i = 0; i < m.threads; ++i) {
    if (m.fibers[i]->state == State::kDone) continue;
    end_launch(fmt::format("thread {} of block ({}, {}, {}) waits at a barrier that others never come to", i,
                           blockIdx.x, blockIdx.y, blockIdx.z));
  }
}

std::vector<unsigned> shuffled(unsigned count, std::uint64_t seed) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0U);
  RandomSequence random(RandomStream{.seed = seed});
  for (unsigned i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

void prepare_threads(const Dim3& block) {
  Machine& m = machine();
  m.threads = block.x * block.y * block.z;
  while (m.fibers.size() < m.threads) m.fibers.push_back(std::make_unique<Fiber>());
  for (unsigned i = 0; i < m.threads; ++i) {
    Fiber& fiber = *m.fibers[i];
    fiber.state = State::kReady;
    fiber.number = i;
    fiber.thread = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
    if (fiber.copies.size() != 1 || !fiber.copies.front().empty()) fiber.copies.assign(1, {});
    fiber.exchanges = 0;
  }
}

void wait(State barrier) {
  machine().running->state = barrier;
  leave();
}

// Exchanges take turns with two places: who still reads from one has not come to the exchange after the next.
std::byte* place_of(unsigned thread) {
  Machine& m = machine();
  return m.exchange.data() + (thread * 2 + m.running->exchanges % 2) * kLaneBytes;
}

}  // namespace

int lane() { return static_cast<int>(machine().running->number % kWarp); }

void* dynamic_shared_memory() { return machine().shared.data(); }

void run_grid(const Dim3& grid, const Dim3& block, std::size_t shared_bytes, const std::function<void()>& thread) {
  Machine& m = machine();
  const unsigned threads = block.x * block.y * block.z;
  check(threads >= 1 && threads <= kMostThreads && grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.y < 65536 &&
            grid.z < 65536 && shared_bytes <= kMostShared,
        "a launch is of 1 to 1024 threads a block, some blocks, and as much shared memory as there is");
  m.body = &thread;
  m.exchange.resize(2 * (threads + kWarp) * kLaneBytes);
  gridDim = grid;
  blockDim = block;
  const unsigned blocks = grid.x * grid.y * grid.z;
  for (const unsigned b : shuffled(blocks, m.blocks)) {
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    m.shared.assign(shared_bytes + 1, std::byte{0xff});  // NaN, so that reading before writing shows
    prepare_threads(block);
    ++m.blocks;
    run_block();
  }
}

void check_aligned(const void* address, std::size_t bytes, const char* what) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  machine().fault = fmt::format("misaligned address: {} of {} bytes at {}", what, bytes, address);
  leave();  // and never comes back
}

void trap() {
  machine().fault = "the kernel traps: it is of another device, or runs by its PTX alone (TERATRON_PTX)";
  leave();  // and never comes back
}

void wait_for_block() { wait(State::kAtBlockBarrier); }
void wait_for_warp() { wait(State::kAtWarpBarrier); }

void put_in(const void* value, std::size_t bytes) {
  Fiber& fiber = *machine().running;
  ++fiber.exchanges;
  std::memcpy(place_of(fiber.number), value, bytes);
  wait_for_warp();
}

const void* put_in_by(int lane) {
  return place_of(machine().running->number / kWarp * kWarp + static_cast<unsigned>(lane));
}

void start_copy(void* to, const void* from, std::size_t bytes, std::size_t given) {
  check_aligned(to, bytes, "an asynchronous copy to shared memory");
  check_aligned(from, bytes, "an asynchronous copy from device memory");
  machine().running->copies.back().push_back({to, from, bytes, given});
}

void commit_copies() { machine().running->copies.emplace_back(); }

void wait_for_copies(int groups_left) {
  std::deque<std::vector<Copy>>& copies = machine().running->copies;
  while (copies.size() > static_cast<std::size_t>(groups_left) + 1) {
    for (const Copy& copy : copies.front()) copy.run();
    copies.pop_front();
  }
}

}  // namespace teratron::emulated
