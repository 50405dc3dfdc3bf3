// Threads of this rank: OpenMP behind two calls, so that no other file needs its pragmas.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace teratron {

// How many threads a parallel_for started from the calling thread uses.
inline int thread_count() { return omp_get_max_threads(); }
inline void set_thread_count(int threads) { omp_set_num_threads(threads); }

// Calls body(begin, end) for consecutive ranges that cover [0, count), each a multiple of `grain` long except the
// last. Ranges are handed out as threads become free, so body must not depend on which thread runs it; results stay
// bitwise repeatable as long as every output element is written by exactly one range. Exceptions thrown by body are
// rethrown here.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t chunks = (count + grain - 1) / grain;
  if (chunks <= 0) return;
  if (chunks == 1 || thread_count() == 1 || omp_in_parallel()) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      body(chunk * grain, std::min(count, (chunk + 1) * grain));
    }
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    try {
      body(chunk * grain, std::min(count, (chunk + 1) * grain));
    } catch (...) {
#pragma omp critical(teratron_parallel_for)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace teratron
