// A device with a stream that computes and others that communicate: threads that do what is queued one after another,
// each piece after a random pause. Others reach its memory, or do not and exchange what it holds through channels.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/far_memory.h"
#include "comm/reduce.h"

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
      if (random_() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 100));
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> works_;
  std::mt19937 random_;
  std::thread thread_;
};

// Which memory of all late devices is allocated: theirs is reached late, by others too.
class LateMemory {
 public:
  void add(const void* memory, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[static_cast<const std::byte*>(memory)] = bytes;
  }
  void remove(const void* memory) {
    const std::lock_guard lock(mutex_);
    bytes_.erase(static_cast<const std::byte*>(memory));
  }
  void require(const std::byte* memory) {
    const std::lock_guard lock(mutex_);
    const auto after = bytes_.upper_bound(memory);
    const bool is_there = after != bytes_.begin() && memory < std::prev(after)->first + std::prev(after)->second;
    if (!is_there) ++touched_released_;
  }
  int touched_released() const { return touched_released_; }
  static LateMemory& everyones() {
    static LateMemory memory;
    return memory;
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, std::int64_t> bytes_;
  std::atomic<int> touched_released_{0};
};

// Messages of one channel that are sent and not yet received.
class LateMail {
 public:
  // The first message of a pair of ranks holds up each host until the other one is there too, as NCCL's does.
  void begin(int from, int to, bool sends) {
    const std::lock_guard lock(mutex_);
    begun_.insert({from, to, sends});
    came_.notify_all();
  }
  void await_other(int from, int to, bool sends) {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, std::chrono::seconds(20), [&] { return begun_.contains({from, to, !sends}); })) {
      throw std::runtime_error("nobody is at a channel's other end");
    }
  }
  void send(int from, int to, std::vector<std::byte> values) {
    const std::lock_guard lock(mutex_);
    letters_[{from, to}].push_back(std::move(values));
    came_.notify_all();
  }
  std::vector<std::byte> receive(int from, int to) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<std::byte>>& letters = letters_[{from, to}];
    if (!came_.wait_for(lock, std::chrono::seconds(20), [&] { return !letters.empty(); })) {
      throw std::runtime_error("nothing comes through a channel");  // and ends the program: it is nobody's thread
    }
    std::vector<std::byte> values = std::move(letters.front());
    letters.pop_front();
    return values;
  }
  // One object for each id.
  static std::shared_ptr<LateMail> of(const std::string& id) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<LateMail>> mails;
    const std::lock_guard lock(mutex);
    std::shared_ptr<LateMail> mail = mails[id].lock();
    if (!mail) mails[id] = mail = std::make_shared<LateMail>();
    return mail;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> letters_;
  std::set<std::tuple<int, int, bool>> begun_;  // sender, receiver, whether it was the sender
};

class LateDevice final : public FarMemory {
 public:
  // `name`: of its memory, with channels to others; empty: others reach its memory.
  explicit LateDevice(std::uint32_t seed, std::string name = "")
      : name_(std::move(name)), random_(seed), compute_(next_seed()) {}
  ~LateDevice() override {
    finish(compute_);
    for (Stream& stream : streams_) stream.finish_all();
  }
  int exchanges() const { return exchanges_; }    // through channels
  int reductions() const { return reductions_; }  // queued
  void fail_from_now_on() { fails_ = true; }      // in copies and reductions
  void rest_on_streams(std::chrono::milliseconds time) {
    for (Stream& stream : streams_) stream.rest(time);
  }
  std::string memory_name() const override { return name_; }

  bool reaches_other_ranks() const override { return name_.empty(); }
  bool has_channels() const override { return !name_.empty(); }
  CommunicationStream* add_communication_stream() override { return &streams_.emplace_back(*this, next_seed()); }
  void* allocate(std::int64_t bytes) override {
    void* const memory = FarMemory::allocate(bytes);
    LateMemory::everyones().add(memory, bytes);
    return memory;
  }
  void release(void* memory) noexcept override {
    finish(compute_);
    LateMemory::everyones().remove(memory);
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

  static constexpr std::int64_t kScratchBytes = 1 << 16;

 private:
  struct Flag final : CommunicationStream::Event {
    std::atomic<bool> reached{false};
  };
  static void wait(const CommunicationStream::EventPtr& event) { static_cast<const Flag&>(*event).reached.wait(false); }
  static CommunicationStream::EventPtr record_on(LateStream& stream) {
    auto flag = std::make_shared<Flag>();
    stream.queue([flag] {
      flag->reached = true;
      flag->reached.notify_all();
    });
    return flag;
  }
  std::uint32_t next_seed() { return static_cast<std::uint32_t>(random_()); }
  static void finish(LateStream& stream) { wait(record_on(stream)); }
  static std::byte* near(const std::byte* memory) { return static_cast<std::byte*>(elsewhere(memory)); }

  class Stream final : public CommunicationStream {
   public:
    Stream(LateDevice& device, std::uint32_t seed) : device_(device), work_(seed) {}
    void finish_all() { finish(work_); }
    void rest(std::chrono::milliseconds time) {
      work_.queue([time] { std::this_thread::sleep_for(time); });
    }

    EventPtr record_compute() override { return record_on(device_.compute_); }
    EventPtr record() override { return record_on(work_); }
    void wait_for(const EventPtr& event) override {
      work_.queue([event] { wait(event); });
    }
    void compute_waits_for(const EventPtr& event) override {
      device_.compute_.queue([event] { wait(event); });
    }
    void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
      if (device_.fails_) throw EnvironmentError("the device failed");
      work_.queue([=, this] { host_.copy(near(to), near(from), bytes); });
    }
    void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
                std::int64_t count) override {
      if (device_.fails_) throw EnvironmentError("the device failed");
      ++device_.reductions_;
      std::vector<std::byte*> to;
      std::vector<const std::byte*> from;
      for (std::byte* const output : outputs) to.push_back(near(output));
      for (const std::byte* const input : inputs) from.push_back(near(input));
      work_.queue([=, this] {
        for (const std::byte* const input : from) LateMemory::everyones().require(near(input));
        host_.reduce(dtype, op, to, from, count);
      });
    }
    std::string make_channel_id() override {
      static std::atomic<int> channels = 0;
      return std::to_string(++channels);
    }
    std::unique_ptr<Channel> open_channel(const std::string& id, int rank, int /*size*/) override {
      return std::make_unique<LateChannel>(device_, work_, id, rank);
    }
    std::span<std::byte> scratch() override {
      if (scratch_.bytes() == 0) scratch_ = Buffer(device_, kScratchBytes);
      return {static_cast<std::byte*>(scratch_.data()), kScratchBytes};
    }

   private:
    LateDevice& device_;
    HostStream host_;
    LateStream work_;
    Buffer scratch_;  // released while all still run
  };

  class LateChannel final : public CommunicationStream::Channel {
   public:
    LateChannel(LateDevice& device, LateStream& stream, const std::string& id, int rank)
        : device_(device), stream_(stream), mail_(LateMail::of(id)), rank_(rank) {}
    void exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
      ++device_.exchanges_;
      for (const Piece& piece : sends) mail_->begin(rank_, piece.rank, true);
      for (const Piece& piece : receives) mail_->begin(piece.rank, rank_, false);
      for (const Piece& piece : sends) mail_->await_other(rank_, piece.rank, true);
      for (const Piece& piece : receives) mail_->await_other(piece.rank, rank_, false);
      stream_.queue([mail = mail_, rank = rank_, sent = std::vector<Piece>(sends.begin(), sends.end()),
                     received = std::vector<Piece>(receives.begin(), receives.end())] {
        for (const Piece& piece : sent) {
          mail->send(rank, piece.rank, std::vector(near(piece.memory), near(piece.memory) + piece.bytes));
        }
        for (const Piece& piece : received) {
          const std::vector<std::byte> values = mail->receive(piece.rank, rank);
          check_equal(std::int64_t(values.size()), piece.bytes, "bytes that were sent and received");
          std::copy(values.begin(), values.end(), near(piece.memory));
        }
      });
    }

   private:
    LateDevice& device_;
    LateStream& stream_;
    const std::shared_ptr<LateMail> mail_;
    const int rank_;
  };

  const std::string name_;
  int exchanges_ = 0, reductions_ = 0;
  bool fails_ = false;
  std::mt19937 random_;
  LateStream compute_;
  std::list<Stream> streams_;
};

}  // namespace teratron::testing
