// The orders of epochs, which take long to make and are asked for again and again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

namespace teratron {

// Keeps those of the two epochs last asked for, since a batch may lie astride the end of one. Safe to use from many
// threads.
template <class Order>
class EpochCache {
 public:
  // make(): the order of this epoch, where it is not here.
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
