// Memory of the CPU back end: where it comes from, copies and fills.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/block_size.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "base/round_up.h"
#include "ops/cpu/conversion.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/ref/memory.h"

namespace teratron {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kCopyGrain = block_size(1 << 18, 64);  // bytes or elements handed to a thread at a time

std::size_t as_size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

// Maps whole huge pages; null where the system refuses.
void* map_huge_pages(std::int64_t bytes) {
  // Maps one page more, and gives the ends back that are not whole pages.
  const std::int64_t mapped = bytes + kHugePage;
  void* const all = mmap(nullptr, as_size(mapped), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  const std::int64_t before = -reinterpret_cast<std::intptr_t>(all) & (kHugePage - 1);
  auto* const memory = static_cast<std::byte*>(all) + before;
  if (before > 0) munmap(all, as_size(before));
  if (before < kHugePage) munmap(memory + bytes, as_size(kHugePage - before));
  // Advice only: where the system refuses, small pages work as well.
  madvise(memory, as_size(bytes), MADV_HUGEPAGE);
  madvise(memory, as_size(bytes), MADV_POPULATE_WRITE);  // now, not in the first step
  return memory;
}

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

template <std::int64_t size>
void copy_row(std::byte* to, const std::byte* from, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count * size));
}

CopyRow copy_row_of(DType to, DType from) {
  if (to != from) return conversion(to, from);
  switch (size_of(to)) {
    case 1: return &copy_row<1>;
    case 2: return &copy_row<2>;
    case 4: return &copy_row<4>;
    default: return &copy_row<8>;
  }
}

// Copies rows of unit stride as a whole, others one element at a time: transposed copies are rare.
void copy_strided(const TensorRef& to, const TensorRef& from, CopyRow copy) {
  auto* const target = static_cast<std::byte*>(to.data);
  const auto* const source = static_cast<const std::byte*>(from.data);
  const int rank = to.shape.rank();
  if (rank == 0) return copy(target, source, 1);
  if (rank == 1 && to.stride(0) == 1 && from.stride(0) == 1) return copy(target, source, to.dim(0));
  for (std::int64_t i = 0; i < to.dim(0); ++i) copy_strided(to.select(0, i), from.select(0, i), copy);
}

template <class T>
void fill_values(const TensorRef& view, T value) {
  T* const to = view.as<T>();
  parallel_for(view.elements(), kCopyGrain,
               [&](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, value); });
}

template <class T>
void fill_normal_values(const TensorRef& view, const RandomStream& random, std::int64_t first_index, double stddev,
                        std::int64_t row_stride) {
  const std::int64_t columns = view.dim(1);
  T* const to = view.as<T>();
  parallel_for(view.elements(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) {
      const auto n = static_cast<std::uint64_t>(first_index + e / columns * row_stride + e % columns);
      const PhiloxCounter bits = random.bits(n / 2);
      const auto pair = normal_from_bits(bits[0], bits[1]);
      to[e] = static_cast<T>(stddev * pair[n % 2]);
      // The next element of the row has the second value of the pair.
      if (n % 2 == 0 && e + 1 < end && (e + 1) % columns != 0) to[++e] = static_cast<T>(stddev * pair[1]);
    }
  });
}

}  // namespace

void* CpuBackend::allocate(std::int64_t bytes) {
  if (guarded_) return guarded_->allocate(bytes);
  const bool is_large = bytes >= kHugePage;
  const std::int64_t rounded = round_up(std::max(bytes, std::int64_t{1}), is_large ? kHugePage : kCacheLine);
  void* const memory = is_large ? map_huge_pages(rounded) : std::aligned_alloc(kCacheLine, as_size(rounded));
  if (memory == nullptr) {
    throw_environment_error("cannot allocate {} bytes of memory; use a smaller batch or model", bytes);
  }
  if (is_large) {
    const std::lock_guard lock(mutex_);
    mapped_[memory] = rounded;
  }
  return memory;
}

void CpuBackend::release(void* memory) noexcept {
  if (guarded_) return guarded_->release(memory);
  std::int64_t mapped = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = mapped_.find(memory); found != mapped_.end()) {
      mapped = found->second;
      mapped_.erase(found);
    }
  }
  mapped > 0 ? static_cast<void>(munmap(memory, as_size(mapped))) : std::free(memory);
}

void CpuBackend::do_upload(const TensorRef& to, const void* from) { copy_bytes(to.data, from, to.bytes()); }

void CpuBackend::do_download(void* to, const TensorRef& from) { copy_bytes(to, from.data, from.bytes()); }

void CpuBackend::do_copy(const TensorRef& to, const TensorRef& from) {
  const CopyRow copy_elements = copy_row_of(to.dtype, from.dtype);
  if (!to.is_contiguous() || !from.is_contiguous()) return copy_strided(to, from, copy_elements);
  auto* const target = static_cast<std::byte*>(to.data);
  const auto* const source = static_cast<const std::byte*>(from.data);
  parallel_for(to.elements(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    copy_elements(target + begin * size_of(to.dtype), source + begin * size_of(from.dtype), end - begin);
  });
}

void CpuBackend::do_split_floats(const TensorRef& nearest, const TensorRef& remainder, const TensorRef& from) {
  parallel_for(from.elements(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    reference::split_floats(nearest.slice(0, begin, end), remainder.slice(0, begin, end), from.slice(0, begin, end));
  });
}

void CpuBackend::do_join_floats(const TensorRef& to, const TensorRef& nearest, const TensorRef& remainder) {
  parallel_for(to.elements(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    reference::join_floats(to.slice(0, begin, end), nearest.slice(0, begin, end), remainder.slice(0, begin, end));
  });
}

void CpuBackend::do_fill(const TensorRef& view, double value) {
  if (value == 0) {  // any dtype: zero is all bits zero in each
    auto* const bytes = static_cast<std::byte*>(view.data);
    parallel_for(view.bytes(), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
      std::memset(bytes + begin, 0, static_cast<std::size_t>(end - begin));
    });
  } else {
    visit_floating(view.dtype, [&]<class T>(ElementType<T>) { fill_values(view, static_cast<T>(value)); });
  }
}

void CpuBackend::do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index,
                                double stddev, std::int64_t row_stride) {
  visit_floating(view.dtype, [&]<class T>(ElementType<T>) {
    fill_normal_values<T>(view, random, first_index, stddev, row_stride);
  });
}

}  // namespace teratron
