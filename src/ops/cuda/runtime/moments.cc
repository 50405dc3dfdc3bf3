#include "ops/cuda/runtime/moments.h"

#include "base/error.h"
#include "base/monotonic_clock.h"

namespace teratron::cuda {

class Moments::StreamMoment final : public Backend::Moment {
 public:
  StreamMoment(cudaStream_t stream, std::shared_ptr<const Anchor> anchor) : anchor_(std::move(anchor)) {
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

std::shared_ptr<const Backend::Moment> Moments::mark() {
  if (!next_) next_ = std::make_shared<Anchor>();
  return std::make_shared<StreamMoment>(stream_, next_);
}

void Moments::anchor() {
  if (!next_) return;
  next_->event.record(stream_);
  next_->event.wait();
  next_->seconds = monotonic_seconds();
  next_ = nullptr;
}

}  // namespace teratron::cuda
