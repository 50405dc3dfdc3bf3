// Memory that only its own copies reach, as that of a GPU: an address of it is no address for the host.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "ops/failing_backend.h"

namespace teratron::testing {

class FarMemory : public FailingBackend {
 public:
  void* allocate(std::int64_t bytes) override { return elsewhere(near_->allocate(bytes)); }
  void release(void* memory) noexcept override { near_->release(elsewhere(memory)); }
  bool is_host_memory() const override { return false; }
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override {
    std::memcpy(to_host, elsewhere(from), static_cast<std::size_t>(bytes));
  }
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override {
    std::memcpy(elsewhere(to), from_host, static_cast<std::size_t>(bytes));
  }

 protected:
  static void* elsewhere(const void* memory) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) ^ (std::uintptr_t{1} << 62));
  }
  void do_upload(const TensorRef& to, const void* from) override { copy_in(to.data, from, to.bytes()); }
  void do_download(void* to, const TensorRef& from) override { copy_out(to, from.data, from.bytes()); }

 private:
  std::unique_ptr<Backend> near_ = make_cpu_backend();
};

}  // namespace teratron::testing
