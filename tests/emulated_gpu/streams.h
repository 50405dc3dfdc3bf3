// Streams and events of the emulated GPU, in one of two ways:
//   - at once: work is done where it is queued, on the caller's thread. So run tests of one process.
//   - late (EMULATED_GPU=late in the environment): each stream has a thread that does its work in order, when it comes
//   to
//     it, and the device is one of its own, with a name that no other process's has. So run ranks that are processes,
//     whose devices wait for one another. What waits for all of a real device's work waits for all streams here:
//     freeing memory, and the first launch of a kernel unless CUDA_MODULE_LOADING is EAGER.
#pragma once

#include "cuda_runtime.h"

namespace teratron::emulated {

bool streams_are_late();

// Waits for what is queued on every stream so far, as what synchronizes a real device's context does.
cudaError_t wait_for_device();

// Does work on a stream that is not capturing: at once, or when the stream comes to it.
cudaError_t run_on(cudaStream_t stream, std::function<cudaError_t()> work);

// A clock of the calling thread, in microseconds, that pass_time() moves.
double clock_microseconds();

}  // namespace teratron::emulated
