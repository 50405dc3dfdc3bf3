// Work done in a forked process: its memory is its own, and is gone when it ends.
#pragma once

#include <functional>
#include <span>
#include <type_traits>

namespace teratron {

// Fills `result` with what `work` writes into the same bytes in a child process. Call while this process has one
// thread. EnvironmentError: the child could not be started, threw (with its message), or died.
void fill_in_child(std::span<std::byte> result, const std::function<void()>& work);

// The value that `work` returns, which must be plain bytes.
template <class Work>
auto run_in_child(const Work& work) {
  using Result = std::invoke_result_t<Work>;
  static_assert(std::is_trivially_copyable_v<Result>);
  Result result{};
  fill_in_child(std::as_writable_bytes(std::span(&result, 1)), [&] { result = work(); });
  return result;
}

}  // namespace teratron
