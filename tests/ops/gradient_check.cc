#include "ops/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace teratron::testing {
namespace {

// A central difference errs by f''' h^2 / 6 and by the rounding of f, 1e-16 |f| / h. With third derivatives and |f| up
// to about 100, both are below 1e-8 at h = 1e-5.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-8;

class Checker {
 public:
  Checker(const GradientCase& tested, std::uint64_t seed)
      : tested_(tested), backend_(make_reference_backend(DType::kF64)), random_(seed) {
    for (const auto& [name, shape] : tested.inputs) {
      add(name, shape, random_.normals(shape));
      poison("d" + name, shape);
    }
    for (const auto& [name, shape] : tested.outputs) {
      poison(name, shape);
      add("d" + name, shape, random_.normals(shape));
    }
    for (const auto& [name, shape] : tested.saved) poison(name, shape);
  }

  void run() {
    tested_.forward(*backend_, views_);
    tested_.backward(*backend_, views_);
    for (const auto& [name, shape] : tested_.inputs) {
      const Values gradient = download_values(*backend_, views_["d" + name]);
      const Values point = download_values(*backend_, views_[name]);
      for (std::size_t e = 0; e < point.size(); ++e) {
        const double expected = difference(name, point, e);
        ASSERT_NEAR(gradient[e], expected, kTolerance * std::max(1.0, std::abs(expected)))
            << "d" << name << ", element " << e;
      }
    }
  }

 private:
  void add(const std::string& name, const Shape& shape, const Values& values) {
    views_.set(name, tensors_[name] = make_tensor(*backend_, shape, values));
  }
  void poison(const std::string& name, const Shape& shape) {
    views_.set(name, tensors_[name] = make_poisoned(*backend_, shape));
  }

  double loss() {
    tested_.forward(*backend_, views_);
    double sum = 0;
    for (const auto& [name, shape] : tested_.outputs) {
      const Values values = download_values(*backend_, views_[name]);
      const Values weights = download_values(*backend_, views_["d" + name]);
      for (std::size_t e = 0; e < values.size(); ++e) sum += values[e] * weights[e];
    }
    return sum;
  }

  double difference(const std::string& name, const Values& point, std::size_t element) {
    Values moved = point;
    moved[element] = point[element] + kStep;
    upload_values(*backend_, views_[name], moved);
    const double above = loss();
    moved[element] = point[element] - kStep;
    upload_values(*backend_, views_[name], moved);
    const double below = loss();
    upload_values(*backend_, views_[name], point);
    return (above - below) / (2 * kStep);
  }

  const GradientCase& tested_;
  std::unique_ptr<Backend> backend_;
  Random random_;
  std::map<std::string, Tensor> tensors_;
  Views views_;
};

}  // namespace

void expect_gradients_match(const GradientCase& tested, std::uint64_t seed) { Checker(tested, seed).run(); }

}  // namespace teratron::testing
