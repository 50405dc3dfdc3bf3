// Differences of two models, beside sums that this test makes itself.
#include "checkpoint/tensor_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/pickled_tensors.h"
#include "checkpoint/random_model.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Values = std::vector<float>;

class TensorDifferences : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  // A file of one tensor [values], of fp32 or of bf16.
  std::filesystem::path file_of(const std::string& name, const Values& values, DType dtype = DType::kF32) const {
    const auto size = static_cast<std::int64_t>(values.size());
    SafetensorsWriter writer(path(name), {{.name = "w", .dtype = dtype, .shape = {size}}});
    std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
    convert_floats(bytes, dtype, std::as_bytes(std::span(values)), DType::kF32);
    writer.write("w", bytes);
    writer.commit();
    return path(name);
  }

  TensorComparison compare_files(const Values& a, const Values& b, double tolerance = 0) const {
    return compare(*open_tensors_of(file_of("a.safetensors", a)), *open_tensors_of(file_of("b.safetensors", b)),
                   tolerance);
  }

  const TemporaryFolder folder_;
};

TEST_F(TensorDifferences, CountsAndNormsOfRandomTensorsAreThoseOfTheDefinition) {
  RandomSequence random({.seed = 1});
  for (int trial = 0; trial < 30; ++trial) {
    Values a(1 + random.below(3000)), b;
    for (float& value : a) value = static_cast<float>(random.below(1000)) / 7.0F;
    b = a;
    std::int64_t differing = 0, first = -1;
    double largest = 0, of_a = 0, of_difference = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (random.below(100) == 0) b[i] += static_cast<float>(random.below(1000));
      const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      if (difference != 0 && differing++ == 0) first = static_cast<std::int64_t>(i);
      largest = std::max(largest, std::abs(difference));
      of_a += static_cast<double>(a[i]) * static_cast<double>(a[i]);
      of_difference += difference * difference;
    }
    const TensorComparison found = compare_files(a, b);
    ASSERT_EQ(found.equal(), differing == 0);
    if (differing == 0) continue;
    ASSERT_EQ(found.parted.size(), 1U);
    const TensorDifference& tensor = found.parted.front();
    EXPECT_EQ(tensor.values, static_cast<std::int64_t>(a.size()));
    EXPECT_EQ(tensor.differing, differing);
    EXPECT_EQ(tensor.first, first);
    EXPECT_EQ(tensor.largest, largest);
    EXPECT_NEAR(tensor.relative, std::sqrt(of_difference / of_a), 1e-12 * tensor.relative);
    EXPECT_TRUE(compare_files(a, b, tensor.relative * 1.001).equal());
    EXPECT_FALSE(compare_files(a, b, tensor.relative * 0.999).equal());
  }
}

TEST_F(TensorDifferences, ValuesThatAreNotFiniteCountAndNoToleranceHidesThem) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare_files({1, nan, infinity}, {1, nan, infinity}).equal());
  const TensorComparison found = compare_files({1, 2, 3}, {1, nan, 3}, 100);
  ASSERT_EQ(found.parted.size(), 1U);
  EXPECT_EQ(found.parted.front().first, 1);
  EXPECT_EQ(found.parted.front().largest, 0);
  EXPECT_FALSE(compare_files({infinity}, {-infinity}, 100).equal());
  EXPECT_TRUE(compare_files({0.0F}, {-0.0F}).equal());
}

TEST_F(TensorDifferences, TensorsOfOtherPrecisionsAreComparedByTheirValues) {
  const Values exact = {1, 0.5F, -3}, rounded = {1, 0.1F, -3};
  const auto bf16 = [&](const Values& values) {
    return open_tensors_of(file_of("h.safetensors", values, DType::kBF16));
  };
  EXPECT_TRUE(compare(*open_tensors_of(file_of("f.safetensors", exact)), *bf16(exact)).equal());
  const TensorComparison found = compare(*open_tensors_of(file_of("f.safetensors", rounded)), *bf16(rounded));
  ASSERT_EQ(found.parted.size(), 1U);
  EXPECT_EQ(found.parted.front().differing, 1);
  EXPECT_TRUE(compare(*open_tensors_of(file_of("f.safetensors", rounded)), *bf16(rounded), 1.0 / 256).equal());
}

TEST_F(TensorDifferences, IntegersAreComparedByTheirBytesAndNoToleranceHidesThem) {
  const auto file_with = [&](const std::string& name, const std::string& type,
                             const std::vector<std::int64_t>& values) {
    std::string header = R"({"w":{"dtype":")" + type + R"(","shape":[4],"data_offsets":[0,32]}})";
    header.resize(64, ' ');
    std::string bytes = std::string("\x40\0\0\0\0\0\0\0", 8) + header;
    bytes.append(reinterpret_cast<const char*>(values.data()), 8 * values.size());
    write_file_atomically(path(name), bytes);
    return open_tensors_of(path(name));
  };
  const auto a = file_with("a.safetensors", "I64", {5, -7, 1, 9}), b = file_with("b.safetensors", "I64", {5, -7, 2, 8});
  EXPECT_TRUE(compare(*a, *a).equal());
  for (const double tolerance : {0.0, 100.0}) {
    const TensorComparison found = compare(*a, *b, tolerance);
    ASSERT_EQ(found.parted.size(), 1U);
    EXPECT_EQ(found.parted.front().values, 4);
    EXPECT_EQ(found.parted.front().differing, 2);
    EXPECT_EQ(found.parted.front().first, 2);
  }
  EXPECT_THAT(compare(*a, *file_with("u.safetensors", "U64", {5, -7, 1, 9})).other_shape,
              ElementsAre("w: I64 [4] and U64 [4]"));
}

TEST_F(TensorDifferences, TypesThatNoModelHasAreComparedByTheirBytesInFilesOfTorch) {
  for (const auto& [dtype, size] : {std::pair<std::string, std::size_t>{"BOOL", 1}, {"I8", 1}, {"I16", 2}}) {
    FileTensor tensor{dtype, {3}, std::string(3 * size, '\1')};
    const auto open = [&](const std::string& name) {
      put_file(path(name), pickled({{"w", tensor}}));
      return open_tensors_of(path(name));
    };
    const auto a = open("a.bin");
    tensor.bytes.back() = '\0';
    const TensorComparison found = compare(*a, *open("b.bin"));
    ASSERT_EQ(found.parted.size(), 1U) << dtype;
    EXPECT_EQ(found.parted.front().values, 3);
    EXPECT_EQ(found.parted.front().differing, 1);
    EXPECT_EQ(found.parted.front().first, 2);
    EXPECT_EQ(a->tensors().front().dtype_name, dtype) << "as safetensors spells it";
  }
}

TEST_F(TensorDifferences, NormsAreOfValuesWhoseSquaresNoDoubleHolds) {
  const auto file_with = [&](const std::string& name, const std::vector<double>& values) {
    write_tensors(path(name), {{"w",
                                {"F64",
                                 {std::ssize(values)},
                                 {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)}}}});
    return open_tensors_of(path(name));
  };
  for (const double unit : {1e200, 1e-200}) {
    const auto a = file_with("a.safetensors", {unit, 0, unit}), b = file_with("b.safetensors", {3 * unit, 0, unit});
    const TensorComparison found = compare(*a, *b, 0.01);
    ASSERT_EQ(found.parted.size(), 1U) << unit;
    EXPECT_NEAR(found.parted.front().relative, std::sqrt(2), 1e-12);
    EXPECT_TRUE(compare(*a, *b, 1.5).equal());
  }
  const double most = std::numeric_limits<double>::max();
  const TensorComparison beyond =
      compare(*file_with("a.safetensors", {most, most}), *file_with("b.safetensors", {-most, -most}), 0.01);
  ASSERT_EQ(beyond.parted.size(), 1U);
  EXPECT_EQ(beyond.parted.front().relative, std::numeric_limits<double>::infinity());
}

TEST_F(TensorDifferences, TensorsOfAnotherShapeOrOneSideAreNamed) {
  const TensorComparison found = compare_files({1, 2}, {1, 2, 3});
  EXPECT_THAT(found.other_shape, ElementsAre("w: F32 [2] and F32 [3]"));
  EXPECT_FALSE(found.equal());
  const RandomModel model(small_config());
  const auto run = save_checkpoint(path("run"), model.config, model.parameters, *model.backend, {});
  const TensorComparison other = compare(*open_tensors_of(file_of("a.safetensors", {1})), *open_tensors_of(run));
  EXPECT_EQ(other.compared, 0);
  EXPECT_THAT(other.only_in_a, ElementsAre("w"));
  EXPECT_EQ(other.only_in_b.size(), model.parameters.size());  // the optimizer's are left out
}

TEST_F(TensorDifferences, ListChangedTensorsInTheModelsOrder) {
  RandomModel model(small_config());
  const auto a = save_checkpoint(path("a"), model.config, model.parameters, *model.backend, {});
  EXPECT_TRUE(compare(*open_tensors_of(a), *open_tensors_of(path("a"))).equal());
  const std::vector<std::size_t> changed = {3, 7};
  for (const std::size_t index : changed) {
    const TensorRef& value = model.parameters[index]->value;
    std::vector<std::byte> bytes(static_cast<std::size_t>(value.bytes()));
    model.backend->download(bytes.data(), value);
    bytes[0] ^= std::byte{1};
    model.backend->upload(value, bytes.data());
  }
  const auto b = save_checkpoint(path("b"), model.config, model.parameters, *model.backend, {});
  const TensorComparison found = compare(*open_tensors_of(a), *open_tensors_of(b));
  ASSERT_EQ(found.parted.size(), changed.size());
  EXPECT_EQ(found.compared, 3 * static_cast<std::int64_t>(model.parameters.size()));  // weights and two moments
  for (std::size_t i = 0; i < changed.size(); ++i) {
    EXPECT_EQ(found.parted[i].name, model.parameters[changed[i]]->name);
    EXPECT_EQ(found.parted[i].differing, 1);
    EXPECT_EQ(found.parted[i].first, 0);
  }
}

TEST_F(TensorDifferences, AHuggingFaceFolderIsComparedUnderOurNamesAndTurnedAsOursAre) {
  RandomModel model(small_config());
  const auto run = save_checkpoint(path("run"), model.config, model.parameters, *model.backend, {});
  export_to_hugging_face(run, path("hf"));
  const TensorComparison found = compare(*open_tensors_of(run), *open_tensors_of(path("hf")));
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(found.compared, static_cast<std::int64_t>(model.parameters.size()));
  model.fill(1);
  const auto other = save_checkpoint(path("other"), model.config, model.parameters, *model.backend, {});
  EXPECT_EQ(compare(*open_tensors_of(other), *open_tensors_of(path("hf"))).parted.size(), model.parameters.size());
}

TEST_F(TensorDifferences, DamageIsReportedInsteadOfADifference) {
  RandomModel model(small_config());
  const auto a = save_checkpoint(path("a"), model.config, model.parameters, *model.backend, {});
  model.fill(1);
  const auto b = save_checkpoint(path("b"), model.config, model.parameters, *model.backend, {});
  std::string bytes = read_file(b / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(b / "model.safetensors", bytes);
  EXPECT_THAT([&] { compare(*open_tensors_of(a), *open_tensors_of(b)); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("model.safetensors")));
  EXPECT_THAT(compare(*open_tensors_of(a), *open_tensors_of(a)).parted, IsEmpty());
}

}  // namespace
}  // namespace teratron::testing
