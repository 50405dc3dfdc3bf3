// Names of processors, and the speed of their matrix products: the yardstick of MFU.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron {

// The processor of the first core in the text of /proc/cpuinfo, as the system names it. Virtual machines say little, so
// also which of its kind it is: family and model on x86, implementer and part on Arm.
std::string processor_in(const std::string& cpuinfo);

// The device's name, else the host's processor and how many cores it has.
std::string processor_name(const Backend& backend);

// Matrix products of all ranks at once, in floating-point operations a second (two for each multiply-add): each rank's
// best of a tenth of a second. Takes and frees memory: 3 MB on a processor, 400 MB on a large GPU. Every rank of
// `world` calls it; all return the same.
double measured_peak_flops(Backend& backend, Communicator& world);

// The most that was ever measured, now or before: the user's cache (user_cache_folder()/peaks) keeps it by processor,
// back end, precision, threads and ranks. A machine that others use at the time shows less than it can do.
double peak_flops(Backend& backend, Communicator& world);

}  // namespace teratron
