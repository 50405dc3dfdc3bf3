// Speed of matrix products: the yardstick of MFU.
#pragma once

#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron {

// Matrix products of all ranks at once, in floating-point operations a second (two for each multiply-add): each rank's
// best of a tenth of a second. Takes and frees memory: 3 MB at least, 800 MB at most, half that in 16 bits (sides
// double until a product takes 2 ms). Every rank of `world` calls it; all return the same.
double measured_peak_flops(Backend& backend, Communicator& world);

// The most that was measured now or before. The user's cache (user_cache_folder()/peaks) keeps it by processor, back
// end, precision, threads and ranks, since a machine that others use at the time reaches less than its best.
double peak_flops(Backend& backend, Communicator& world);

}  // namespace teratron
