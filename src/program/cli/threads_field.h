// --threads of commands that start no ranks.
#pragma once

#include <cstdint>
#include <string>

#include "base/host/threads.h"
#include "options/fields.h"

namespace teratron {

// `more`: text that the help adds.
inline void add_threads_field(FieldList& list, std::int64_t& threads, const std::string& more = "") {
  constexpr std::int64_t kMostThreads = 4096;  // as of ranks (settings/layout_settings.cc)
  list.add("threads", &threads, "N", "0: one per core" + more).between(0, kMostThreads);
}

inline void use_threads(std::int64_t threads) {
  if (threads > 0) set_thread_count(static_cast<int>(threads));
}

}  // namespace teratron
