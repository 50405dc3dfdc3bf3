// Bytes that one rendering may make, copy and compare. The count bounds the time and the memory that a template takes.
#pragma once

#include <cstddef>
#include <utility>

#include "jinja/error.h"

namespace teratron::jinja {

class ByteBudget {
 public:
  // Budget of the calling thread while it lives; afterwards the one before counts again.
  explicit ByteBudget(std::size_t most) : most_(most), left_(most), before_(std::exchange(of_thread_, this)) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;
  ~ByteBudget() { of_thread_ = before_; }

  static ByteBudget* of_thread() { return of_thread_; }  // nullptr: the thread renders nothing

  // Error: less than `bytes` is left.
  void take(std::size_t bytes) {
    if (bytes > left_) fail("the template makes, copies and compares more than {} bytes", most_);
    left_ -= bytes;
  }

 private:
  static inline thread_local ByteBudget* of_thread_ = nullptr;
  const std::size_t most_;
  std::size_t left_;
  ByteBudget* const before_;
};

// Takes bytes from the budget of the calling thread, if it has one. Error: less is left.
inline void spend(std::size_t bytes) {
  if (ByteBudget* const budget = ByteBudget::of_thread()) budget->take(bytes);
}

}  // namespace teratron::jinja
