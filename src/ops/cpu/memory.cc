// Memory of the CPU back end: where it comes from, copies and fills.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/cpu_backend.h"

namespace teratron {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kCopyGrain = std::int64_t{1} << 18;  // bytes or elements handed to a thread at a time

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

// One element at a time is enough for the odd transposed copy; rows with unit stride go as a whole.
void copy_strided(const TensorRef& to, const TensorRef& from) {
  const int rank = to.shape.rank();
  const auto element = static_cast<std::size_t>(size_of(to.dtype));
  if (rank == 0) {
    std::memcpy(to.data, from.data, element);
    return;
  }
  if (rank == 1 && to.stride(0) == 1 && from.stride(0) == 1) {
    std::memcpy(to.data, from.data, element * static_cast<std::size_t>(to.dim(0)));
    return;
  }
  for (std::int64_t i = 0; i < to.dim(0); ++i) copy_strided(to.select(0, i), from.select(0, i));
}

template <class T>
void fill_values(const TensorRef& view, T value) {
  T* const to = view.as<T>();
  parallel_for(view.elements(), kCopyGrain,
               [&](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, value); });
}

}  // namespace

void* CpuBackend::allocate(std::int64_t bytes) {
  if (guarded_) return guarded_->allocate(bytes);
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const std::int64_t rounded = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  void* const memory = std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(rounded));
  if (memory == nullptr) {
    throw_environment_error("cannot allocate {} bytes of memory; use a smaller batch or model", bytes);
  }
  // Advice only: where the system refuses, small pages work as well.
  if (alignment == kHugePage) madvise(memory, static_cast<std::size_t>(rounded), MADV_HUGEPAGE);
  return memory;
}

void CpuBackend::release(void* memory) noexcept {
  if (guarded_) {
    guarded_->release(memory);
  } else {
    std::free(memory);
  }
}

void CpuBackend::do_upload(const TensorRef& to, const void* from) { copy_bytes(to.data, from, to.bytes()); }

void CpuBackend::do_download(void* to, const TensorRef& from) { copy_bytes(to, from.data, from.bytes()); }

void CpuBackend::do_copy(const TensorRef& to, const TensorRef& from) {
  if (to.is_contiguous() && from.is_contiguous()) {
    copy_bytes(to.data, from.data, to.bytes());
  } else {
    copy_strided(to, from);
  }
}

void CpuBackend::do_fill(const TensorRef& view, double value) {
  if (value == 0) {  // any dtype: zero is all bits zero in each
    auto* const bytes = static_cast<std::byte*>(view.data);
    parallel_for(view.bytes(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
      std::memset(bytes + begin, 0, static_cast<std::size_t>(end - begin));
    });
  } else {
    fill_values(view, static_cast<float>(value));
  }
}

void CpuBackend::do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index,
                                double stddev) {
  float* const to = view.as<float>();
  parallel_for(view.elements(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) {
      const auto n = static_cast<std::uint64_t>(first_index + e);
      const PhiloxCounter bits = random.bits(n / 2);
      to[e] = static_cast<float>(stddev * normal_from_bits(bits[0], bits[1])[n % 2]);
    }
  });
}

}  // namespace teratron
