#include "base/files/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <new>

namespace teratron {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;
std::atomic<std::uint64_t> all_bytes{0};

}  // namespace

struct Checksum::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> hash{XXH3_createState()};
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  if (!state_->hash) throw std::bad_alloc();
  XXH3_64bits_reset(state_->hash.get());
}
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {  // in pieces, each of which is counted when it is done
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPiece));
    XXH3_64bits_update(state_->hash.get(), piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
    all_bytes.fetch_add(piece.size(), std::memory_order_relaxed);
  }
}

std::uint64_t checksummed_bytes() { return all_bytes.load(std::memory_order_relaxed); }

std::string Checksum::digest() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_->hash.get())); }

std::string checksum_of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.update(bytes);
  return checksum.digest();
}

}  // namespace teratron
