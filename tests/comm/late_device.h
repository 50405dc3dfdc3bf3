// A device with two streams, computing and communication: threads that do what is queued one after another, each piece
// after a random pause.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "comm/far_memory.h"
#include "comm/thread/host_stream.h"

namespace teratron::testing {

class LateStream {
 public:
  explicit LateStream(std::uint32_t seed) : random_(seed), thread_([this] { run(); }) {}
  ~LateStream() {
    queue(nullptr);
    thread_.join();
  }
  void queue(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    came_.notify_one();
  }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      came_.wait(lock, [this] { return !works_.empty(); });
      const std::function<void()> work = std::move(works_.front());
      works_.pop_front();
      lock.unlock();
      if (!work) return;
      if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> works_;
  std::mt19937 random_;
  std::thread thread_;
};

class LateDevice final : public FarMemory, private CommunicationStream {
 public:
  explicit LateDevice(std::uint32_t seed) : compute_(2 * seed), communication_(2 * seed + 1) {}
  ~LateDevice() override { finish(compute_); }

  CommunicationStream* communication_stream() override { return this; }
  void release(void* memory) noexcept override {
    finish(compute_);
    FarMemory::release(memory);
  }
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override {
    compute_.queue([=, this] { FarMemory::copy_out(to_host, from, bytes); });
    finish(compute_);
  }
  // The values are taken at once, and written late.
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override {
    const auto* const first = static_cast<const std::byte*>(from_host);
    compute_.queue([=, this, values = std::vector<std::byte>(first, first + bytes)] {
      FarMemory::copy_in(to, values.data(), bytes);
    });
  }

 private:
  struct Flag final : Event {
    std::atomic<bool> reached{false};
  };
  static void wait(const EventPtr& event) { static_cast<const Flag&>(*event).reached.wait(false); }
  static EventPtr record_on(LateStream& stream) {
    auto flag = std::make_shared<Flag>();
    stream.queue([flag] {
      flag->reached = true;
      flag->reached.notify_all();
    });
    return flag;
  }
  static void finish(LateStream& stream) { wait(record_on(stream)); }

  EventPtr record_compute() override { return record_on(compute_); }
  EventPtr record() override { return record_on(communication_); }
  void wait_for(const EventPtr& event) override {
    communication_.queue([event] { wait(event); });
  }
  void compute_waits_for(const EventPtr& event) override {
    compute_.queue([event] { wait(event); });
  }
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    communication_.queue([=, this] { host_.copy(near(to), near(from), bytes); });
  }
  void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
              std::int64_t count) override {
    std::vector<std::byte*> to;
    std::vector<const std::byte*> from;
    for (std::byte* const output : outputs) to.push_back(near(output));
    for (const std::byte* const input : inputs) from.push_back(near(input));
    communication_.queue([=, this] { host_.reduce(dtype, op, to, from, count); });
  }
  static std::byte* near(const std::byte* memory) { return static_cast<std::byte*>(elsewhere(memory)); }

  HostStream host_;
  LateStream compute_, communication_;
};

}  // namespace teratron::testing
