#include "ops/cuda/runtime/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace teratron::cuda {
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

}  // namespace teratron::cuda

#else  // a toolkit without NVTX

namespace teratron::cuda {

void begin_range(std::string_view /*name*/) {}
void end_range() {}

}  // namespace teratron::cuda

#endif
