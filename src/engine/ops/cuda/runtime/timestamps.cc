#include "ops/cuda/runtime/timestamps.h"

#include "base/error.h"
#include "base/host/monotonic_clock.h"

namespace teratron::cuda {

class Timestamps::StreamTimestamp final : public Backend::Timestamp {
 public:
  StreamTimestamp(cudaStream_t stream, std::shared_ptr<const Anchor> anchor) : anchor_(std::move(anchor)) {
    event_.record(stream);
  }
  double seconds() const override {
    check(anchor_->seconds >= 0, "the device has been waited for");
    return anchor_->seconds - 1e-6 * anchor_->event.microseconds_since(event_);
  }

 private:
  TimedEvent event_;
  const std::shared_ptr<const Anchor> anchor_;
};

std::shared_ptr<const Backend::Timestamp> Timestamps::record() {
  if (!next_) next_ = std::make_shared<Anchor>();
  return std::make_shared<StreamTimestamp>(stream_, next_);
}

void Timestamps::anchor() {
  if (!next_) return;
  next_->event.record(stream_);
  next_->event.wait();
  next_->seconds = monotonic_seconds();
  next_ = nullptr;
}

}  // namespace teratron::cuda
