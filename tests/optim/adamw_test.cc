// AdamW against the equations of Loshchilov and Hutter (Algorithm 2) in double, step by step.
#include "optim/adamw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "comm/launch.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kSize = 37;

// Two parameters in double: one that decays, one that does not.
class AdamWUpdates : public ::testing::Test {
 protected:
  struct Host {
    std::vector<double> value = std::vector<double>(kSize), gradient = value, moment1 = value, moment2 = value;
  };

  void SetUp() override {
    for (std::size_t p = 0; p < 2; ++p) {
      parameters_[p].name = p == 0 ? "matrix" : "bias";
      parameters_[p].decay = p == 0;
      parameters_[p].shape = {kSize};
      parameters_[p].state.slots = AdamWOptimizer().slots(parameters_[p], DType::kF64);
      TensorRef* const views[] = {&parameters_[p].value, &parameters_[p].gradient,
                                  &parameters_[p].state.slots.at(0).values, &parameters_[p].state.slots.at(1).values};
      for (TensorRef* view : views) {
        tensors_.emplace_back(*backend_, DType::kF64, Shape{kSize});
        *view = tensors_.back();
        backend_->fill_zero(*view);
      }
      for (double& value : host_[p].value) value = random_.uniform() - 0.5;
      backend_->upload(parameters_[p].value, host_[p].value.data());
    }
  }

  void draw_gradients(double scale) {
    for (std::size_t p = 0; p < 2; ++p) {
      for (double& value : host_[p].gradient) value = scale * (random_.uniform() - 0.5);
      backend_->upload(parameters_[p].gradient, host_[p].gradient.data());
    }
  }

  void apply(const AdamWSettings& settings, const UpdateStep& step) {
    AdamWOptimizer(settings).update(*backend_, mesh_, all_, step, {});
  }

  double expected_norm() const {
    double sum = 0;
    for (const Host& host : host_) {
      for (const double value : host.gradient) sum += value * value;
    }
    return std::sqrt(sum);
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend(DType::kF64);
  RandomSequence random_{RandomStream{.seed = 5}};
  std::vector<Tensor> tensors_;
  Parameter parameters_[2];
  Host host_[2];
  Mesh mesh_ = make_single_rank_mesh();
  std::vector<Parameter*> all_ = {&parameters_[0], &parameters_[1]};
};

TEST_F(AdamWUpdates, FollowsThePaperAndDecaysOnlyWhatDecays) {
  const AdamWSettings settings{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.1, .clip = 1.0};
  for (int update = 1; update <= 20; ++update) {
    draw_gradients(update % 2 == 0 ? 0.1 : 4.0);  // below and above the clip
    const double rate = 0.01 * update, norm = expected_norm();
    EXPECT_NEAR(gradient_norm(*backend_, all_, mesh_), norm, 1e-12);
    apply(settings, {.learning_rate = rate, .update = update, .gradient_norm = norm});
    const double clip = std::min(1.0, 1.0 / (norm + 1e-6));
    for (std::size_t p = 0; p < 2; ++p) {
      Host& h = host_[p];
      std::vector<double> actual(kSize);
      backend_->download(actual.data(), parameters_[p].value);
      for (std::size_t i = 0; i < kSize; ++i) {
        const double g = h.gradient[i] * clip;
        h.moment1[i] = 0.8 * h.moment1[i] + 0.2 * g;
        h.moment2[i] = 0.9 * h.moment2[i] + 0.1 * g * g;
        const double m = h.moment1[i] / (1 - std::pow(0.8, update)), v = h.moment2[i] / (1 - std::pow(0.9, update));
        h.value[i] -= rate * (m / (std::sqrt(v) + 1e-3) + (p == 0 ? 0.1 : 0.0) * h.value[i]);
        ASSERT_NEAR(actual[i], h.value[i], 1e-12) << "update " << update << ", parameter " << p << ", element " << i;
      }
    }
  }
}

TEST_F(AdamWUpdates, WithoutClippingTheGradientIsTakenAsItIs) {
  draw_gradients(1e3);
  AdamWSettings settings{.beta1 = 0, .beta2 = 0, .epsilon = 1e6, .weight_decay = 0, .clip = 0};
  apply(settings, {.learning_rate = 1.0, .gradient_norm = 1e9});
  std::vector<double> actual(kSize);
  backend_->download(actual.data(), parameters_[1].value);
  for (std::size_t i = 0; i < kSize; ++i) {
    const double g = host_[1].gradient[i];
    EXPECT_NEAR(actual[i], host_[1].value[i] - g / (std::abs(g) + 1e6), 1e-15);
  }
}

TEST_F(AdamWUpdates, AGradientThatIsNotFiniteMakesTheNormSo) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    draw_gradients(1);
    host_[1].gradient[7] = bad;
    backend_->upload(parameters_[1].gradient, host_[1].gradient.data());
    EXPECT_FALSE(std::isfinite(gradient_norm(*backend_, all_, mesh_)));
  }
}

// One rank's overflow is everyone's, whether ranks hold other parameters or other elements of the same.
TEST(GradientNorm, IsNotFiniteOnAnyRankWhereItIsNotOnOne) {
  for (const bool sharded : {false, true}) {
    run_ranks({}, 2, [&](Communicator& world) {
      const auto backend = make_reference_backend(DType::kF32);
      const Mesh mesh = make_mesh(world, sharded ? MeshShape{.data = 2} : MeshShape{.tensor = 2});
      const Tensor gradient(*backend, DType::kF32, {8});
      backend->fill(gradient, 1.0);
      Parameter parameter{.name = "matrix", .shape = {8}, .split = {.axis = 0}, .group = {world.rank(), 2}};
      parameter.gradient = gradient;
      if (sharded) parameter.sharding = {.run = 4, .ranks = 2, .rank = world.rank()};
      Parameter* const all[] = {&parameter};
      EXPECT_DOUBLE_EQ(gradient_norm(*backend, all, mesh), std::sqrt(sharded ? 8.0 : 16.0));
      if (world.rank() == 1) backend->fill(gradient, std::numeric_limits<double>::infinity());
      EXPECT_FALSE(std::isfinite(gradient_norm(*backend, all, mesh)));
    });
  }
}

// Gradients of the scaled loss, and the norm of those, give the update of the gradients themselves.
TEST_F(AdamWUpdates, AGradientScaleIsTakenOutBeforeClipping) {
  const AdamWSettings settings{.epsilon = 1e-3, .clip = 1.0};
  draw_gradients(3);
  const double norm = expected_norm();
  ASSERT_GT(norm, 1);
  apply(settings, {.learning_rate = 0.1, .gradient_norm = norm});
  std::vector<double> plain(kSize), scaled(kSize);
  backend_->download(plain.data(), parameters_[0].value);

  backend_->upload(parameters_[0].value, host_[0].value.data());
  for (Parameter* parameter : all_) {
    for (const OptimizerSlot& slot : parameter->state.slots) backend_->fill_zero(slot.values);
  }
  for (std::size_t p = 0; p < 2; ++p) {
    for (double& value : host_[p].gradient) value *= 1024;
    backend_->upload(parameters_[p].gradient, host_[p].gradient.data());
  }
  apply(settings,
        {.learning_rate = 0.1, .gradient_norm = gradient_norm(*backend_, all_, mesh_), .gradient_scale = 1.0 / 1024});
  backend_->download(scaled.data(), parameters_[0].value);
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(scaled[i], plain[i], 1e-14);
}

}  // namespace
}  // namespace teratron::testing
