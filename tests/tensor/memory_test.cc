// Owners of device memory: what they take they give back, and an arena's plan is safe and tight.
#include "tensor/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <utility>

#include "base/host/host_name.h"

namespace teratron::testing {
namespace {

class CountingAllocator : public Allocator {
 public:
  void* allocate(std::int64_t bytes) override {
    void* const memory = std::aligned_alloc(64, static_cast<std::size_t>((bytes + 63) / 64 * 64 + 64));
    live_.insert(memory);
    return memory;
  }
  void release(void* memory) noexcept override {
    EXPECT_EQ(live_.erase(memory), 1U);
    std::free(memory);
  }
  std::size_t live() const { return live_.size(); }

 private:
  std::set<void*> live_;
};

// Ranks share what a host has left, or a device, by its name.
TEST(Memory, OfAHostHasTheHostsName) { EXPECT_EQ(CountingAllocator().memory_name(), host_name()); }

TEST(Buffer, GivesItsMemoryBackOnceHoweverItIsMoved) {
  CountingAllocator allocator;
  {
    Buffer a(allocator, 100), b(allocator, 200);
    Buffer c = std::move(a);
    c = std::move(b);
    EXPECT_EQ(c.bytes(), 200);
    Buffer empty;
    c = std::move(empty);
    EXPECT_EQ(c.data(), nullptr);
  }
  EXPECT_EQ(allocator.live(), 0U);
}

TEST(TensorMemory, IsSeenByTheLastOwnerAlone) {
  CountingAllocator allocator;
  Tensor a(allocator, DType::kF32, {3}), b(allocator, DType::kF32, {5});
  const void* const memory = a.ref().data;
  Tensor c = std::move(a);
  EXPECT_EQ(c.ref().data, memory);
  EXPECT_EQ(a.ref().data, nullptr);  // NOLINT: what is left of it is the question
  EXPECT_EQ(a.ref().elements(), TensorRef().elements());
  b = std::move(c);
  EXPECT_EQ(b.ref().data, memory);
  EXPECT_EQ(b.ref().elements(), 3);
  EXPECT_NE(c.ref().data, memory);  // NOLINT
}

TEST(Buffer, RefusesAViewThatDoesNotFit) {
  CountingAllocator allocator;
  const Buffer buffer(allocator, 100);
  EXPECT_EQ(buffer.view(DType::kF32, {5, 5}).shape, (Shape{5, 5}));
  EXPECT_THROW((void)buffer.view(DType::kF32, {26}), InternalError);
}

TEST(Tensor, OwnsMemoryForItsView) {
  CountingAllocator allocator;
  {
    Tensor tensor(allocator, DType::kI32, {3, 4});
    const void* const memory = tensor.ref().data;
    tensor = Tensor(std::move(tensor));
    EXPECT_EQ(tensor.ref().data, memory);
    EXPECT_EQ(tensor.ref().bytes(), 48);
  }
  EXPECT_EQ(allocator.live(), 0U);
}

struct Life {
  std::int64_t size;
  int first, last;
};

struct Planned {
  Arena arena;
  std::vector<Arena::Block> blocks;

  explicit Planned(const std::vector<Life>& lives) {
    for (const auto& [size, first, last] : lives) {
      blocks.push_back(arena.add("block", MemoryKind::kActivations, DType::kU8, {size}, first, last));
    }
    arena.plan();
  }
};

// The largest sum of sizes alive at one moment, each rounded up to the arena's unit, counted moment by moment.
std::int64_t fullest(const std::vector<Life>& lives, int moments) {
  std::int64_t most = 0;
  for (int moment = 0; moment < moments; ++moment) {
    std::int64_t sum = 0;
    for (const auto& [size, first, last] : lives) {
      if (first <= moment && moment <= last) sum += (size + 127) / 128 * 128;
    }
    most = std::max(most, sum);
  }
  return most;
}

std::vector<Life> random_lives(std::mt19937& random, int moments) {
  const auto below = [&](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  std::vector<Life> lives(static_cast<std::size_t>(1 + below(60)));
  for (Life& life : lives) {
    life.size = below(5) == 0 ? below(20) : below(10000);
    life.first = below(moments);
    life.last = below(6) == 0 ? Arena::kForever : life.first + below(moments - life.first);
  }
  return lives;
}

TEST(Arena, BlocksThatLiveAtTheSameTimeShareNoMemory) {
  std::mt19937 random(1);
  CountingAllocator allocator;
  for (int round = 0; round < 200; ++round) {
    const std::vector<Life> lives = random_lives(random, 30);
    Planned planned(lives);
    planned.arena.allocate(allocator);
    const auto begin_of = [&](std::size_t i) { return static_cast<std::byte*>(planned.arena[planned.blocks[i]].data); };
    std::byte* lowest = begin_of(0);
    for (std::size_t i = 0; i < lives.size(); ++i) lowest = std::min(lowest, begin_of(i));
    for (std::size_t i = 0; i < lives.size(); ++i) {
      ASSERT_EQ(planned.arena[planned.blocks[i]].bytes(), lives[i].size);
      ASSERT_LE(begin_of(i) - lowest + lives[i].size, planned.arena.bytes());
      for (std::size_t j = 0; j < i; ++j) {
        const bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
        const bool apart = begin_of(i) + lives[i].size <= begin_of(j) || begin_of(j) + lives[j].size <= begin_of(i);
        ASSERT_TRUE(!together || apart || lives[i].size == 0 || lives[j].size == 0) << "round " << round;
      }
    }
  }
}

// First fit as it reads: those that always live first, then the largest; each at the lowest place that is free.
std::int64_t first_fit(const std::vector<Life>& lives) {
  struct Place {
    std::int64_t offset, end;
    int first, last;
  };
  std::vector<Life> order = lives;
  for (Life& life : order) life.size = (life.size + 127) / 128 * 128;
  std::ranges::stable_sort(order, [](const Life& a, const Life& b) {
    const bool a_always = a.last == Arena::kForever, b_always = b.last == Arena::kForever;
    return a_always != b_always ? a_always : a.size > b.size;
  });
  std::vector<Place> placed;
  std::int64_t most = 0;
  for (const Life& life : order) {
    std::int64_t offset = 0;
    for (const Place& other : placed) {
      if (other.last < life.first || life.last < other.first) continue;
      if (offset + life.size <= other.offset) break;
      offset = std::max(offset, other.end);
    }
    placed.push_back({offset, offset + life.size, life.first, life.last});
    std::ranges::stable_sort(placed, {}, &Place::offset);
    most = std::max(most, offset + life.size);
  }
  return most;
}

TEST(Arena, ManyShortLivesArePlacedAsTheRuleSays) {
  std::mt19937 random(3);
  const auto below = [&](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  for (int round = 0; round < 24; ++round) {
    const int moments = 100 << (round % 4 * 2), longest = 1 + moments / (1 + below(100));
    std::vector<Life> lives(500);
    for (Life& life : lives) {
      life.size = below(4) == 0 ? below(20) : 100 * below(8);
      life.first = below(moments);
      life.last = below(40) == 0 ? Arena::kForever : std::min(moments - 1, life.first + below(longest));
    }
    // Nearly in the order of time, as a pipeline's: by groups of micro-batches, in which the last is the first.
    if (round % 2 == 1) {
      const auto group = [&](const Life& life) { return std::pair{life.first * 20 / moments, -life.first}; };
      std::ranges::stable_sort(lives, {}, group);
    }
    EXPECT_EQ(Planned(lives).arena.bytes(), first_fit(lives)) << "round " << round;
  }
}

TEST(Arena, ItsLowerBoundIsTheFullestMoment) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Life> lives = random_lives(random, 30);
    const Planned planned(lives);
    EXPECT_EQ(planned.arena.lower_bound(), fullest(lives, 30));
    EXPECT_GE(planned.arena.bytes(), planned.arena.lower_bound());
  }
}

// The lives of a training step: layer l's saved activations live from its forward to its backward pass, workspaces for
// one moment, the residual stream's gradient from layer to layer.
std::vector<Life> nested_lives(std::mt19937& random) {
  const auto below = [&](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  const int layers = 1 + below(24);
  std::vector<Life> lives;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(2 + below(6)));
  for (std::int64_t& size : sizes) size = 128 * (1 + below(1000));
  for (int layer = 0; layer < layers; ++layer) {
    const int forward = layer, backward = 2 * layers - 1 - layer;
    for (const std::int64_t size : sizes) lives.push_back({size, forward, backward});
    lives.push_back({sizes[0], forward, forward + 1});
    lives.push_back({2 * sizes[1], forward, forward});
    lives.push_back({4 * sizes[1], backward, backward});
    lives.push_back({sizes[0], backward, backward + 1});
  }
  return lives;
}

TEST(Arena, WastesAtMostAFifthOnTheNestedLivesOfForwardAndBackward) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Planned planned(nested_lives(random));
    EXPECT_LE(static_cast<double>(planned.arena.bytes()), 1.2 * static_cast<double>(planned.arena.lower_bound()));
  }
}

TEST(Arena, BytesByKindAddUpToTheFullestMoment) {
  Arena arena;
  arena.add("weights", MemoryKind::kWeights, DType::kF32, {1000}, 0, Arena::kForever);
  arena.add("saved", MemoryKind::kActivations, DType::kF32, {500}, 1, 5);
  arena.add("scratch", MemoryKind::kWorkspace, DType::kF32, {100}, 3, 3);
  arena.add("late", MemoryKind::kWorkspace, DType::kF32, {200}, 7, 7);
  arena.plan();
  EXPECT_EQ(arena.bytes_of(MemoryKind::kWeights), 4096);
  EXPECT_EQ(arena.bytes_of(MemoryKind::kActivations), 2048);
  EXPECT_EQ(arena.bytes_of(MemoryKind::kWorkspace), 512);
  EXPECT_EQ(arena.lower_bound(), 4096 + 2048 + 512);
}

TEST(Arena, RefusesStepsOutOfOrder) {
  CountingAllocator allocator;
  Arena arena;
  arena.add("a", MemoryKind::kWeights, DType::kF32, {4}, 0, 1);
  EXPECT_THROW(arena.allocate(allocator), InternalError);
  EXPECT_THROW(arena.add("b", MemoryKind::kWeights, DType::kF32, {4}, 2, 1), InternalError);
  arena.plan();
  EXPECT_THROW(arena.add("c", MemoryKind::kWeights, DType::kF32, {4}, 0, 1), InternalError);
  EXPECT_THROW((void)arena[7], InternalError);
}

}  // namespace
}  // namespace teratron::testing
