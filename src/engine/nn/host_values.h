// Floating values between host and device, whatever type the device stores.
#pragma once

#include <span>

#include "ops/backend.h"

namespace teratron {

void download_floats(Backend& backend, TensorRef from, std::span<float> to);
void download_floats(Backend& backend, TensorRef from, std::span<double> to);
void upload_floats(Backend& backend, TensorRef to, std::span<const float> from, double factor = 1);  // from * factor

}  // namespace teratron
