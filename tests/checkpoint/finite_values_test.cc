// A value that is not finite is found wherever it lies, and no checkpoint holds one.
#include "checkpoint/safetensors/finite_values.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/philox.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/random_model.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The bytes of finite values, the largest of their type among them.
template <class T>
std::vector<std::byte> finite_bytes(std::size_t count, T largest, RandomSequence& random) {
  std::vector<T> values(count);
  for (T& value : values) {
    value = static_cast<T>(random.below(2) == 0 ? largest : static_cast<T>(random.next_u32() % 1000));
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

bool all_finite(DType dtype, const std::vector<std::byte>& bytes, RandomSequence& random) {
  FiniteValues values(dtype);
  for (std::size_t at = 0; at < bytes.size();) {  // pieces that cut values apart
    const std::size_t piece = std::min<std::size_t>(random.below(23), bytes.size() - at);
    values.update(std::span(bytes).subspan(at, piece));
    at += piece;
  }
  return values.all();
}

template <class T>
void find_one_among_many(DType dtype, T largest, std::initializer_list<T> wrong) {
  RandomSequence random({.seed = 3});
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t count = 1 + random.below(60);
    std::vector<std::byte> bytes = finite_bytes<T>(count, largest, random);
    EXPECT_TRUE(all_finite(dtype, bytes, random)) << name_of(dtype);
    const T value = *(wrong.begin() + random.below(wrong.size()));
    std::memcpy(bytes.data() + random.below(count) * sizeof(T), &value, sizeof(T));
    EXPECT_FALSE(all_finite(dtype, bytes, random)) << name_of(dtype);
  }
}

TEST(FiniteValues, OneThatIsNotIsFoundWhereverPiecesAreCut) {
  const double nan = std::nan("");
  find_one_among_many<double>(DType::kF64, std::numeric_limits<double>::max(), {nan, kInfinity, -kInfinity});
  find_one_among_many<float>(DType::kF32, std::numeric_limits<float>::max(),
                             {static_cast<float>(nan), static_cast<float>(kInfinity), static_cast<float>(-kInfinity)});
  find_one_among_many<std::uint16_t>(DType::kBF16, 0x7f7f, {0x7f80, 0xff80, 0x7fc0, 0xff81});
  find_one_among_many<std::uint16_t>(DType::kF16, 0x7bff, {0x7c00, 0xfc00, 0x7e00, 0xfc01});
}

TEST(FiniteValues, NoSaveKeepsOneThatIsNotAndWhatStandsStays) {
  const TemporaryFolder folder;
  RandomSequence random({.seed = 4});
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const auto root = folder / name_of(dtype);
    RandomModel model(small_config(), dtype);
    const auto save = [&](std::int64_t iteration) {
      save_checkpoint(root, model.config, model.parameters, *model.backend, some_state(iteration), {.keep_last = 1});
    };
    save(1);
    const auto before = all_files(root);
    for (int trial = 0; trial < 40; ++trial) {
      model.fill(static_cast<std::uint64_t>(trial));
      const Parameter& parameter = *model.parameters[random.below(model.parameters.size())];
      const std::array<std::pair<TensorRef, const char*>, 3> tensors = {
          {{parameter.value, ""},
           {parameter.state.slot("moment1"), ".moment1"},
           {parameter.state.slot("moment2"), ".moment2"}}};
      const auto& [tensor, suffix] = tensors[random.below(3)];
      const double wrong = random.below(2) == 0 ? std::nan("") : -kInfinity;
      const std::int64_t row = static_cast<std::int64_t>(
          random.below(static_cast<std::uint64_t>(parameter.shape[0] - parameter.padding_rows)));
      model.backend->fill(tensor.slice(0, row, row + 1), wrong);
      EXPECT_THAT(message_of<UserError>([&] { save(2); }),
                  AllOf(HasSubstr("'" + parameter.name + suffix + "'"), HasSubstr("after 2 updates"),
                        HasSubstr("no checkpoint was written")));
      EXPECT_EQ(all_files(root), before);
    }
  }
}

// Changes the last value of a file's last tensor, and its checksum: damage before the file was written.
std::string make_last_value(const std::filesystem::path& folder, const std::filesystem::path& name, float value) {
  std::string bytes = bytes_of_file(folder / name);
  bytes.replace(bytes.size() - sizeof value, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
  put_file(folder / name, bytes);
  const SafetensorsFile file(folder / name);
  const SafetensorsEntry& last = file.tensors().back();
  Checksum checksum;
  checksum.update(file.bytes(last));
  Manifest manifest = read_manifest(folder);
  manifest.files.at(name).tensors.at(last.name) = checksum.digest();
  write_manifest(folder, manifest);
  return last.name;
}

TEST(FiniteValues, ACheckpointThatHoldsOneThatIsNotIsRefusedByTheTensorsName) {
  const TemporaryFolder folder;
  RandomModel model(small_config()), read(small_config());
  for (const char* name : {"optimizer.safetensors", "model.safetensors"}) {
    const std::filesystem::path checkpoint =
        save_checkpoint(folder / "run", model.config, model.parameters, *model.backend, some_state(1));
    const std::string tensor = make_last_value(checkpoint, name, -std::numeric_limits<float>::infinity());
    const auto refusal = AllOf(HasSubstr("are not finite: '" + tensor + "' holds"), HasSubstr(checkpoint.string()));
    const auto load = [&](bool verify) {
      load_checkpoint(checkpoint, read.config, read.parameters, *read.backend, {.verify = verify});
    };
    EXPECT_THAT(message_of<UserError>([&] { load(true); }), refusal);
    load(false);  // another rank has looked
  }
  EXPECT_THAT(message_of<UserError>([&] { export_to_hugging_face(folder / "run", folder / "hf"); }),
              HasSubstr("are not finite"));
  EXPECT_FALSE(std::filesystem::exists(folder / "hf"));
}

}  // namespace
}  // namespace teratron::testing
