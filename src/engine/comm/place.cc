#include "comm/place.h"

#include <fmt/format.h>

#include <algorithm>

namespace teratron {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

std::string Activity::text() const {
  std::string text = name;
  if (micro_batch >= 0) text += fmt::format(" of micro-batch {}", micro_batch);
  if (slice >= 0) text += fmt::format(", slice {}", slice);
  if (chunk >= 0) text += fmt::format(", chunk {}", chunk);
  if (iteration >= 0) text += fmt::format(" of iteration {}", iteration);
  return text;
}

std::string AwaitedCall::text() const {
  constexpr int kMostShown = 8;
  if (size == 0) return name;
  if (stride == 0) return fmt::format("{} {} ranks from {} on", name, size, first);
  std::string text = fmt::format("{} rank{} {}", name, size == 1 ? "" : "s", first);
  for (int member = 1; member < std::min(size, kMostShown); ++member) {
    text += fmt::format(", {}", first + member * stride);
  }
  if (size > kMostShown) text += fmt::format(" .. {}", first + (size - 1) * stride);
  return text;
}

std::string Place::Look::text() const {
  const std::string own = activity.text();
  if (!waits) return own;
  return fmt::format("{}{}{}", own, own.empty() ? "" : ", in ", call.text());
}

void Place::enter(const Activity& activity) {
  name_.store(activity.name, kRelaxed);
  iteration_.store(activity.iteration, kRelaxed);
  micro_batch_.store(activity.micro_batch, kRelaxed);
  slice_.store(activity.slice, kRelaxed);
  chunk_.store(activity.chunk, kRelaxed);
  progress_.add();
}

Place::Look Place::look() const {
  return {.activity = {.name = name_.load(kRelaxed),
                       .iteration = iteration_.load(kRelaxed),
                       .micro_batch = micro_batch_.load(kRelaxed),
                       .slice = slice_.load(kRelaxed),
                       .chunk = chunk_.load(kRelaxed)},
          .call = {.name = call_.load(kRelaxed),
                   .first = first_.load(kRelaxed),
                   .stride = stride_.load(kRelaxed),
                   .size = size_.load(kRelaxed)},
          .waits = waits_.load(kRelaxed),
          .progress = progress_.get()};
}

// Calls of one rank nest where a collective is made of others; the outermost one is what the caller asked for.
Place::Waits::Waits(const AwaitedCall& call, Place* place) : place_(place) {
  if (place_ == nullptr) return;
  waited_ = place_->waits_.load(kRelaxed);
  if (waited_) return;
  place_->call_.store(call.name, kRelaxed);
  place_->first_.store(call.first, kRelaxed);
  place_->stride_.store(call.stride, kRelaxed);
  place_->size_.store(call.size, kRelaxed);
  place_->waits_.store(true, kRelaxed);
}

Place::Waits::~Waits() {
  if (place_ == nullptr) return;
  if (!waited_) place_->waits_.store(false, kRelaxed);
  place_->progress_.add();
}

}  // namespace teratron
