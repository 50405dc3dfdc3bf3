// Threads of this rank: oneTBB behind a few calls. A thread that has nothing to do sleeps, and the thread that started
// a loop goes on alone while others have no core: another busy process costs a share of the time, not all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>

namespace teratron {

// How many threads a parallel_for started from the calling thread uses; every thread has a number of its own. At first
// that of the environment variable OMP_NUM_THREADS where it is one, else usable_processors() (base/host/processors.h).
int thread_count();
void set_thread_count(int threads);  // at least 1

// Whether an error says that the system gives no more threads, be it the standard library's or oneTBB's.
bool is_lack_of_threads(const std::exception& error);

// Calls chunk(i) for 0 <= i < chunks on the threads of the calling thread. One after another where it has one thread,
// or is itself in such a call.
void for_each_chunk_in_parallel(std::int64_t chunks, const std::function<void(std::int64_t)>& chunk);

// Calls body(begin, end) for consecutive ranges that cover [0, count), each a multiple of `grain` long except the
// last. Ranges are handed out as threads become free, so body must not depend on which thread runs it; results stay
// bitwise repeatable as long as every output element is written by exactly one range. Exceptions thrown by body are
// rethrown here.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  for_each_chunk_in_parallel((count + grain - 1) / grain,
                             [&](std::int64_t chunk) { body(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}

}  // namespace teratron
