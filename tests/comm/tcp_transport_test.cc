// Messages over connections: matched by sender, group, kind and tag, whatever the order, the size and the direction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "comm/tcp/scattered_broadcast.h"
#include "comm/tcp_jobs.h"

namespace teratron {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using testing::run_world;
using Bytes = std::vector<std::uint8_t>;

Bytes pattern(std::size_t bytes, std::uint32_t seed) {
  Bytes result(bytes);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::uint8_t& byte : result) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return result;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

// A send or receive with requests of its own.
struct OneMessage {
  Bytes bytes;
  std::unique_ptr<Requests> requests;
};

OneMessage send(Transport& group, RequestKind kind, int to, int tag, Bytes bytes) {
  OneMessage message{std::move(bytes), group.requests(kind)};
  message.requests->send(message.bytes.data(), static_cast<std::int64_t>(message.bytes.size()), to, tag);
  return message;
}

OneMessage receive(Transport& group, RequestKind kind, int from, int tag, std::size_t bytes) {
  OneMessage message{Bytes(bytes), group.requests(kind)};
  message.requests->receive(message.bytes.data(), static_cast<std::int64_t>(bytes), from, tag);
  return message;
}

TEST(TcpTransport, MessagesOfAwkwardSizesArriveWhole) {
  const std::vector<std::size_t> sizes = {0, 1, 15, 16, 17, 31, 32, 33, 4095, 65536, 65537, (1U << 20) - 1, 5000011};
  const auto errors = run_world(2, [&](Transport& world) {
    const int other = 1 - world.rank();
    for (const bool receive_first : {false, true}) {  // in its place at once, or kept first
      std::vector<OneMessage> sent, received;
      for (std::size_t n = 0; n < sizes.size(); ++n) {
        const auto seed = static_cast<std::uint32_t>(n);
        if (receive_first) received.push_back(receive(world, RequestKind::kMessage, other, 0, sizes[n]));
        sent.push_back(send(world, RequestKind::kMessage, other, 0, pattern(sizes[n], seed)));
      }
      for (OneMessage& message : sent) message.requests->wait();
      for (std::size_t n = 0; n < sizes.size(); ++n) {
        if (!receive_first) received.push_back(receive(world, RequestKind::kMessage, other, 0, sizes[n]));
        received[n].requests->wait();
        expect(received[n].bytes == pattern(sizes[n], static_cast<std::uint32_t>(n)), "a message is not what was sent");
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Four groups with the same two ranks, both purposes, several tags: everything is received in an order of its own.
TEST(TcpTransport, MessagesAreMatchedWhateverTheOrder) {
  constexpr int kGroups = 4, kTags = 4, kRepeats = 3;
  const auto errors = run_world(3, [&](Transport& world) {
    const auto pair = world.rank() < 2 ? world.split({1, 0}) : world.split({2});
    // Ranks 0 and 1 have made more groups than rank 2 when all make one.
    const auto again = world.rank() < 2 ? pair->split({0, 1}) : nullptr;
    const auto all = world.split({0, 1, 2});
    const auto neighbour = [&](int step) { return (all->rank() + step) % 3; };
    const auto own = static_cast<std::uint32_t>(all->rank()), before = static_cast<std::uint32_t>(neighbour(2));
    const OneMessage round = send(*all, RequestKind::kCollective, neighbour(1), 9, pattern(100, own));
    const OneMessage came = receive(*all, RequestKind::kCollective, neighbour(2), 9, 100);
    came.requests->wait();
    round.requests->wait();
    expect(came.bytes == pattern(100, before), "a message of a group of all is another's");
    if (world.rank() == 2) return;
    Transport* const groups[kGroups] = {&world, pair.get(), again.get(), all.get()};
    const auto other_in = [&](int group) { return 1 - groups[group]->rank(); };
    struct Key {
      int group, kind, tag, repeat;
      std::uint32_t seed() const { return static_cast<std::uint32_t>(((group * 2 + kind) * 10 + tag) * 10 + repeat); }
      std::size_t bytes() const { return 1 + seed() * 37 % 5000; }
    };
    std::vector<Key> keys;
    for (int n = 0; n < kGroups * 2 * kTags; ++n) keys.push_back({n % kGroups, n / kGroups % 2, n / kGroups / 2, 0});
    std::mt19937 random(static_cast<unsigned>(7 + world.rank()));
    std::vector<OneMessage> sent, received;
    const auto shuffled = [&](const auto& take) {
      for (int repeat = 0; repeat < kRepeats; ++repeat) {  // equal keys keep their order
        std::ranges::shuffle(keys, random);
        for (Key key : keys) {
          key.repeat = repeat;
          take(key);
        }
      }
    };
    shuffled([&](const Key& key) {
      sent.push_back(send(*groups[key.group], static_cast<RequestKind>(key.kind), other_in(key.group), key.tag,
                          pattern(key.bytes(), key.seed())));
    });
    shuffled([&](const Key& key) {
      OneMessage message =
          receive(*groups[key.group], static_cast<RequestKind>(key.kind), other_in(key.group), key.tag, key.bytes());
      if (key.seed() % 2 == 0) message.requests->wait();
      received.push_back(std::move(message));
      if (key.seed() % 2 == 0) {
        expect(received.back().bytes == pattern(key.bytes(), key.seed()), "a message went to another's receive");
      }
    });
    for (OneMessage& message : received) message.requests->wait();
    for (OneMessage& message : sent) message.requests->wait();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// More than sockets hold, from everyone to everyone, before anybody receives.
TEST(TcpTransport, LargeMessagesInAllDirectionsNeverBlockEachOther) {
  constexpr std::size_t kBytes = 24 << 20;
  const auto errors = run_world(3, [&](Transport& world) {
    std::vector<OneMessage> sent, received;
    for (int step = 1; step < 3; ++step) {
      const auto seed = static_cast<std::uint32_t>(world.rank());
      sent.push_back(send(world, RequestKind::kMessage, (world.rank() + step) % 3, 5, pattern(kBytes, seed)));
    }
    for (OneMessage& message : sent) message.requests->wait();
    for (int step = 1; step < 3; ++step) {
      OneMessage message = receive(world, RequestKind::kMessage, (world.rank() + step) % 3, 5, kBytes);
      message.requests->wait();
      expect(message.bytes == pattern(kBytes, static_cast<std::uint32_t>((world.rank() + step) % 3)), "bytes changed");
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(TcpTransport, AReceiveTakesOverAMessageThatIsComing) {
  constexpr std::size_t kBytes = 24 << 20;
  const auto errors = run_world(2, [&](Transport& world) {
    if (world.rank() == 0) {
      OneMessage small = send(world, RequestKind::kMessage, 1, 1, pattern(10, 1));
      OneMessage large = send(world, RequestKind::kMessage, 1, 2, pattern(kBytes, 2));
      OneMessage last = send(world, RequestKind::kMessage, 1, 3, pattern(10, 3));
      for (OneMessage* message : {&small, &large, &last}) message->requests->wait();
      return;
    }
    receive(world, RequestKind::kMessage, 0, 1, 10).requests->wait();  // the large one's beginning has come with it
    OneMessage large = receive(world, RequestKind::kMessage, 0, 2, kBytes);
    receive(world, RequestKind::kMessage, 0, 3, 10).requests->wait();
    large.requests->wait();
    expect(large.bytes == pattern(kBytes, 2), "bytes changed");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(TcpTransport, AMessageOfAnotherLengthThanItsReceiveIsABug) {
  const auto errors = run_world(2, [&](Transport& world) {
    if (world.rank() == 0) return send(world, RequestKind::kMessage, 1, 0, Bytes(7)).requests->wait();
    receive(world, RequestKind::kMessage, 0, 0, 8).requests->wait();
  });
  EXPECT_THAT(errors[1], ::testing::HasSubstr("bytes of a message: got 7, expected 8"));
}

TEST(TcpTransport, BroadcastsOfAnySizeReachEveryone) {
  for (const int size : {2, 3, 4}) {
    const auto errors = run_world(size, [&](Transport& world) {
      for (const std::int64_t bytes : {1, 65536, 65537, 524289, 5000011}) {
        for (int root = 0; root < size; ++root) {
          const Bytes right = pattern(static_cast<std::size_t>(bytes), static_cast<std::uint32_t>(root));
          Bytes data = world.rank() == root ? right : Bytes(right.size());
          world.start_broadcast(data.data(), bytes, root, 2 * root)->wait();
          expect(data == right, "a broadcast brought something else");
        }
      }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

// Counts what is sent, and sends nothing.
class CountingTransport final : public Transport {
 public:
  CountingTransport(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Requests> requests(RequestKind) override { return std::make_unique<Counting>(sent); }
  std::unique_ptr<Pending::Work> start_broadcast(void*, std::int64_t, int, int) override { return nullptr; }
  std::unique_ptr<Transport> split(const std::vector<int>&) override { return nullptr; }
  std::int64_t sent = 0;

 private:
  struct Counting final : Requests {
    explicit Counting(std::int64_t& sum) : sum_(sum) {}
    void send(const void*, std::int64_t bytes, int, int) override { sum_ += bytes; }
    void receive(void*, std::int64_t, int, int) override {}
    void wait() override {}
    std::int64_t& sum_;
  };
  const int rank_, size_;
};

TEST(TcpTransport, NobodySendsALongBroadcastTwice) {
  constexpr std::int64_t kBytes = 20000003;
  Bytes data(kBytes);
  for (int rank = 0; rank < 5; ++rank) {
    CountingTransport transport(rank, 5);
    ScatteredBroadcast(transport, data.data(), kBytes, 2, 0).wait();
    EXPECT_LE(transport.sent, kBytes);
    if (rank == 2) {
      EXPECT_EQ(transport.sent, kBytes);
    }
  }
}

}  // namespace
}  // namespace teratron
