// Muon against PyTorch in double (tests/golden/make_muon_golden.py), and by what defines it.
#include "optim/muon/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/philox.h"
#include "optim/muon/matrices.h"
#include "optim/muon/newton_schulz.h"

namespace teratron::testing {
namespace {

// SplitMix64, as the oracle draws weights (update 0) and gradients.
double golden_uniform(std::uint64_t parameter, std::uint64_t update, std::uint64_t element) {
  std::uint64_t z = ((parameter << 40) + (update << 20) + element + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) / 9007199254740992.0 - 0.5;
}

std::vector<double> golden_values(std::size_t parameter, std::uint64_t update, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t e = 0; e < count; ++e) {
    values.push_back(golden_uniform(parameter, update, static_cast<std::uint64_t>(e)));
  }
  return values;
}

// The parameters of the oracle, on one rank, in double.
class MuonUpdates : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto add = [&](const char* name, const Shape& shape, std::int64_t matrices) {
      Parameter& parameter = parameters_.emplace_back();
      parameter.name = name;
      parameter.shape = shape;
      parameter.decay = shape.rank() == 2;
      parameter.layer_matrix = matrices > 0;
      if (matrices > 0) parameter.split = {.axis = 0, .blocks = matrices};
    };
    add("qkv", {18, 6}, 3);
    add("projection", {6, 6}, 1);
    add("up", {10, 6}, 1);
    add("down", {6, 10}, 1);
    add("bias", {10}, 0);
    add("table", {7, 6}, 0);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      Parameter& parameter = parameters_[i];
      parameter.value = zeros(parameter.shape);
      parameter.gradient = zeros(parameter.shape);
      upload(parameter.value, golden_values(i, 0, parameter.shape.elements()));
      parameter.state.slots = optimizer_.slots(parameter, DType::kF64);
      for (OptimizerSlot& slot : parameter.state.slots) slot.values = zeros({parameter.shape.elements()});
      all_.push_back(&parameter);
    }
  }

  TensorRef zeros(const Shape& shape) {
    tensors_.emplace_back(*backend_, DType::kF64, shape);
    backend_->fill_zero(tensors_.back());
    return tensors_.back();
  }
  void upload(TensorRef to, const std::vector<double>& values) { backend_->upload(to, values.data()); }

  void update(std::uint64_t number) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      upload(parameters_[i].gradient, golden_values(i, number, parameters_[i].shape.elements()));
    }
    const UpdateMemory memory = optimizer_.memory(all_, DType::kF64);
    const Buffer workspace(*backend_, memory.bytes);
    optimizer_.update(*backend_, mesh_, all_,
                      {.learning_rate = 0.02 / static_cast<double>(number),
                       .update = static_cast<std::int64_t>(number),
                       .gradient_norm = gradient_norm(*backend_, all_, mesh_)},
                      Carver(workspace.data()));
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend(DType::kF64);
  Mesh mesh_ = make_single_rank_mesh();
  MuonOptimizer optimizer_{{}, {.weight_decay = 0.1}};
  std::vector<Tensor> tensors_;
  std::deque<Parameter> parameters_;
  std::vector<Parameter*> all_;
};

TEST_F(MuonUpdates, TenAreThoseOfAnImplementationFromThePapers) {
  for (std::uint64_t number = 1; number <= 10; ++number) update(number);
  const auto expected = nlohmann::json::parse(read_file(TERATRON_SOURCE_DIR "/tests/golden/muon.json"));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::vector<double> golden = expected.at(parameters_[i].name).get<std::vector<double>>();
    const std::vector<double> before = golden_values(i, 0, parameters_[i].shape.elements());
    ASSERT_EQ(golden.size(), before.size());
    std::vector<double> actual(golden.size());
    backend_->download(actual.data(), parameters_[i].value);
    double movement = 0, difference = 0;
    for (std::size_t e = 0; e < golden.size(); ++e) {
      movement += std::pow(golden[e] - before[e], 2);
      difference += std::pow(actual[e] - golden[e], 2);
    }
    ASSERT_GT(movement, 0) << parameters_[i].name;
    EXPECT_LT(std::sqrt(difference), 1e-9 * std::sqrt(movement)) << parameters_[i].name;
  }
}

TEST_F(MuonUpdates, SlotsAreAMomentumForMatricesOfLayersAndTwoMomentsForTheRest) {
  for (const Parameter& parameter : parameters_) {
    std::vector<std::string> names;
    for (const OptimizerSlot& slot : parameter.state.slots) names.push_back(slot.name);
    const std::vector<std::string> moments = {"moment1", "moment2"};
    EXPECT_EQ(names, parameter.layer_matrix ? std::vector<std::string>{"momentum"} : moments) << parameter.name;
  }
}

// The sum of the squares of n singular values, each between 0.68 and 1.21, whichever side is the smaller.
TEST(Orthogonalize, BringsSingularValuesNearOne) {
  RandomSequence random({.seed = 3});
  const auto backend = make_reference_backend(DType::kF64);
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 9}, {5, 40}, {33, 6}}) {
    std::vector<double> values(static_cast<std::size_t>(rows * columns));
    for (double& value : values) value = random.uniform() - 0.5;
    const double norm = std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
    for (double& value : values) value /= norm;
    const std::int64_t n = std::min(rows, columns);
    const Tensor x(*backend, DType::kF64, {rows, columns}), other(*backend, DType::kF64, {rows, columns});
    const Tensor gram(*backend, DType::kF64, {n, n}), square(*backend, DType::kF64, {n, n});
    backend->upload(x, values.data());
    orthogonalize(*backend, x, {.other = other, .gram = gram, .square = square, .wide_gram = gram});
    const double sum = backend->sum_of_squares(x);  // of the squares of the singular values
    EXPECT_GT(sum, 0.68 * 0.68 * static_cast<double>(n)) << rows << " x " << columns;
    EXPECT_LT(sum, 1.21 * 1.21 * static_cast<double>(n)) << rows << " x " << columns;
  }
}

// Every rank that shares a stage's matrices is given as many as the others, or one less in the last round.
TEST(MatrixRounds, ShareTheMatricesOutEvenlyAndTheLargestComeFirst) {
  for (const int tensor : {1, 2, 3}) {
    for (const int data : {1, 2, 4}) {
      std::vector<Parameter> parameters(10);
      std::vector<Parameter*> all;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        Parameter& parameter = parameters[i];
        const bool is_packed = i % 2 == 0;
        parameter.shape = {is_packed ? 18 : 24, 6};
        parameter.layer_matrix = i != 9;
        parameter.split = {.axis = 0, .blocks = is_packed ? 3 : 1};
        parameter.group = {.rank = 0, .size = tensor};
        parameter.sharding = {.first = 0, .run = (parameter.shape.elements() + data - 1) / data, .ranks = data};
        all.push_back(&parameter);
      }
      const std::vector<MatrixRound> rounds = rounds_of(all);
      std::vector<int> owned(static_cast<std::size_t>(tensor * data));
      std::int64_t last = std::numeric_limits<std::int64_t>::max(), matrices = 0;
      for (const MatrixRound& round : rounds) {
        for (std::size_t i = 0; i < round.size(); ++i, ++matrices) {
          const MatrixOwner owner = owner_of(i, tensor);
          ASSERT_LT(owner.tensor, tensor);
          ASSERT_LT(owner.data, data);
          ++owned[static_cast<std::size_t>(owner.data * tensor + owner.tensor)];
          EXPECT_LE(round[i].elements(), last);
          last = round[i].elements();
          std::int64_t pieces = 0;
          for (int rank = 0; rank < data; ++rank) pieces += round[i].piece(rank).count();
          EXPECT_EQ(pieces, round[i].part_elements());
        }
      }
      EXPECT_EQ(matrices, 5 * 3 + 4);
      EXPECT_LE(std::ranges::max(owned) - std::ranges::min(owned), 1);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
