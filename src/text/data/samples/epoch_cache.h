// A cache of epochs' orders, which take long to make and are asked for repeatedly.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

namespace teratron {

// Keeps the two epochs asked for last, since a batch may span two. Safe to use from many threads.
template <class Order>
class EpochCache {
 public:
  // make() makes the order of this epoch if it is not cached.
  template <class Make>
  std::shared_ptr<const Order> get(std::int64_t epoch, const Make& make) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[static_cast<std::size_t>(epoch % 2)];
    if (entry.epoch != epoch) entry = {epoch, std::make_shared<const Order>(make())};
    return entry.order;
  }

 private:
  struct Entry {
    std::int64_t epoch = -1;
    std::shared_ptr<const Order> order;
  };
  std::mutex mutex_;
  std::array<Entry, 2> entries_;
};

}  // namespace teratron
