#include "ops/cuda/runtime/profiling.h"

#include "base/error.h"
#include "base/host/monotonic_clock.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include <string>
#define TERATRON_HAS_NVTX
#endif

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

#ifdef TERATRON_HAS_NVTX
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t teratron = nvtxDomainCreateA("teratron");
  return teratron;
}

}  // namespace

void begin_range(std::string_view name) {
  const std::string text(name);
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text.c_str();
  nvtxDomainRangePushEx(domain(), &attributes);
}

void end_range() { nvtxDomainRangePop(domain()); }
#else
void begin_range(std::string_view /*name*/) {}
void end_range() {}
#endif

}  // namespace teratron::cuda
