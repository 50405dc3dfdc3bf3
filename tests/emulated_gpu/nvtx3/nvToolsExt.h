// Stands in for NVIDIA's header of this name: ranges are kept on a stack that tests can read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

using nvtxDomainHandle_t = const char*;
enum { NVTX_VERSION = 3, NVTX_MESSAGE_TYPE_ASCII = 1 };
struct nvtxEventAttributes_t {
  int version;
  std::size_t size;
  int messageType;
  struct {
    const char* ascii;
  } message;
};
constexpr std::size_t NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t);

namespace teratron::emulated {
struct Ranges {
  std::vector<std::string> open, closed;  // by the order of their ends
};
inline thread_local Ranges ranges;  // of the calling thread
}  // namespace teratron::emulated

inline nvtxDomainHandle_t nvtxDomainCreateA(const char* name) { return name; }
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  teratron::emulated::ranges.open.emplace_back(attributes->message.ascii);
  return 0;
}
inline int nvtxDomainRangePop(nvtxDomainHandle_t) {
  auto& [open, closed] = teratron::emulated::ranges;
  closed.push_back(std::move(open.back()));
  open.pop_back();
  return 0;
}
