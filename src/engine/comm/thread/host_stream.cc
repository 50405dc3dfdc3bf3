#include "comm/thread/host_stream.h"

#include <cstring>
#include <vector>

#include "base/host/threads.h"
#include "comm/reduce.h"

namespace teratron {
namespace {

constexpr std::int64_t kGrain = 1 << 14;      // elements handed to a thread of a rank at a time
constexpr std::int64_t kCopyGrain = 1 << 16;  // bytes

}  // namespace

void HostStream::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (to == from) return;
  parallel_for(bytes, kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

void HostStream::reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                        std::span<const std::byte* const> inputs, std::int64_t count) {
  const std::int64_t size = size_of(dtype);
  parallel_for(count, kGrain, [&](std::int64_t first, std::int64_t last) {
    std::vector<const std::byte*> from(inputs.begin(), inputs.end());
    std::vector<std::byte*> to(outputs.begin(), outputs.end());
    for (const std::byte*& input : from) input += first * size;
    for (std::byte*& output : to) output += first * size;
    reduce_elements(dtype, op, to, from, last - first);
  });
}

}  // namespace teratron
