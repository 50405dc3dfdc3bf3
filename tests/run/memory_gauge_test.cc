#include "run/observers/memory_gauge.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/host/resources.h"
#include "ops/backend.h"

namespace teratron::testing {
namespace {

// A device that has given away so many bytes.
class Device final : public Allocator {
 public:
  explicit Device(std::int64_t taken) : taken_(taken) {}
  void* allocate(std::int64_t) override { return nullptr; }
  void release(void*) noexcept override {}
  std::int64_t taken_bytes() const override { return taken_; }
  bool is_host_memory() const override { return false; }

 private:
  const std::int64_t taken_;
};

TEST(MemoryGauge, OfRanksThatShareAProcessEachHoldsAPart) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const RankBoard board;
  const auto resident = static_cast<std::int64_t>(resident_memory_bytes());
  MemoryGauge alone(board, *backend, 1, 7), shared(board, *backend, 4, 7);
  EXPECT_NEAR(static_cast<double>(alone.fullest(1)), static_cast<double>(resident), 0.2 * static_cast<double>(resident))
      << "other threads of the test may take some";
  EXPECT_NEAR(static_cast<double>(4 * shared.fullest(1)), static_cast<double>(resident),
              0.2 * static_cast<double>(resident));
  EXPECT_EQ(alone.planned(), 7);
}

TEST(MemoryGauge, TheRankOfAnotherProcessThatHoldsMoreCounts) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  RankBoard board;
  constexpr std::int64_t kMuch = std::int64_t{1} << 50;
  const std::vector<RankReport> reports = {{.rank = 0, .memory = 1}, {.rank = 1, .memory = kMuch}};
  board.take(reports);
  EXPECT_EQ(MemoryGauge(board, *backend, 1, 0).fullest(1), kMuch);
  const Device device(512);
  EXPECT_EQ(MemoryGauge(board, device, 1, 0).fullest(1), 512) << "boards know memory of hosts alone";
}

TEST(MemoryGauge, AllLogsOfAnUpdateReadTheSameNumber) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  RankBoard board;
  MemoryGauge gauge(board, *backend, 1, 0);
  const std::int64_t first = gauge.fullest(5);
  const std::vector<RankReport> reports = {{.rank = 0, .memory = std::int64_t{1} << 50}};
  board.take(reports);
  EXPECT_EQ(gauge.fullest(5), first);
}

}  // namespace
}  // namespace teratron::testing
