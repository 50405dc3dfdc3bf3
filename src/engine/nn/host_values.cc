#include "nn/host_values.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace teratron {
namespace {

template <class To>
void download_as(Backend& backend, TensorRef from, std::span<To> to) {
  check_equal(from.elements(), static_cast<std::int64_t>(to.size()), "values to download");
  visit_floating(from.dtype, [&]<class Stored>(ElementType<Stored>) {
    std::vector<Stored> values(to.size());
    backend.download(values.data(), from);
    std::ranges::transform(values, to.begin(), [](Stored value) { return static_cast<To>(value); });
  });
}

}  // namespace

void download_floats(Backend& backend, TensorRef from, std::span<float> to) { download_as(backend, from, to); }
void download_floats(Backend& backend, TensorRef from, std::span<double> to) { download_as(backend, from, to); }

void upload_floats(Backend& backend, TensorRef to, std::span<const float> from, double factor) {
  check_equal(to.elements(), static_cast<std::int64_t>(from.size()), "values to upload");
  visit_floating(to.dtype, [&]<class Stored>(ElementType<Stored>) {
    std::vector<Stored> values(from.size());
    std::ranges::transform(from, values.begin(), [factor](float value) { return static_cast<Stored>(value * factor); });
    backend.upload(to, values.data());
  });
}

}  // namespace teratron
