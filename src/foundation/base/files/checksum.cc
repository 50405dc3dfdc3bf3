#include "base/files/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "base/host/progress_count.h"

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

namespace {

std::unique_ptr<Checksum::State> new_state() {
  auto state = std::make_unique<Checksum::State>();
  if (!state->hash) throw std::bad_alloc();
  XXH3_64bits_reset(state->hash.get());
  return state;
}

}  // namespace

Checksum::Checksum() : state_(new_state()) {}
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {  // pieces, each counted when it is done
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPiece));
    XXH3_64bits_update(state_->hash.get(), piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
    all_bytes.fetch_add(piece.size(), std::memory_order_relaxed);
    note_progress();
  }
}

std::uint64_t checksummed_bytes() { return all_bytes.load(std::memory_order_relaxed); }

std::string Checksum::digest() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_->hash.get())); }

BlockChecksums::BlockChecksums(std::size_t block_bytes) : state_(new_state()), block_bytes_(block_bytes) {}
BlockChecksums::~BlockChecksums() = default;

void BlockChecksums::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), block_bytes_ - filled_));
    XXH3_64bits_update(state_->hash.get(), piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
    filled_ += piece.size();
    if (filled_ < block_bytes_) return;
    done_.push_back(static_cast<std::uint32_t>(XXH3_64bits_digest(state_->hash.get())));
    XXH3_64bits_reset(state_->hash.get());
    filled_ = 0;
  }
}

std::vector<std::uint32_t> BlockChecksums::digests() const {
  std::vector<std::uint32_t> all = done_;
  if (filled_ > 0) all.push_back(static_cast<std::uint32_t>(XXH3_64bits_digest(state_->hash.get())));
  return all;
}

std::uint32_t block_checksum_of(std::span<const std::byte> block) {
  return static_cast<std::uint32_t>(XXH3_64bits(block.data(), block.size()));
}

std::string checksum_of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.update(bytes);
  return checksum.digest();
}

}  // namespace teratron
