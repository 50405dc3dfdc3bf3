#include "base/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace teratron {

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
  if (!bytes.empty()) XXH3_64bits_update(state_->hash.get(), bytes.data(), bytes.size());
}

std::string Checksum::digest() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_->hash.get())); }

std::string checksum_of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.update(bytes);
  return checksum.digest();
}

}  // namespace teratron
