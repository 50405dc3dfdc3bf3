// safetensors files: what is written is the format, what is read is what the format says, and nothing else is accepted.
#include "checkpoint/safetensors/safetensors.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/damage.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16,
                            DType::kI64, DType::kI32, DType::kU16,  DType::kU8};

std::string with_header(std::string_view json, std::string_view data) {
  const std::uint64_t length = json.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file.append(json).append(data);
}

std::string random_bytes(RandomSequence& random, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next_u32());
  return bytes;
}

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Tensors of every type and of 0 to 4 axes (sizes 0 and 1 among them), wider types first.
std::vector<SafetensorsDeclaration> random_tensors(RandomSequence& random) {
  std::vector<SafetensorsDeclaration> tensors;
  for (const DType dtype :
       {DType::kF64, DType::kI64, DType::kF32, DType::kI32, DType::kBF16, DType::kF16, DType::kU16, DType::kU8}) {
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      std::vector<std::int64_t> shape;
      for (std::uint64_t rank = random.below(5); rank > 0; --rank) {
        shape.push_back(static_cast<std::int64_t>(random.below(5)));
      }
      tensors.push_back({fmt::format("{} \"{}\" \\é/{}", name_of(dtype), i, tensors.size()), dtype, shape});
    }
  }
  return tensors;
}

TEST(Safetensors, ReadingGivesBackWhatWasWrittenForEveryType) {
  const TemporaryFolder folder;
  RandomSequence random({.seed = 1});
  for (int trial = 0; trial < 40; ++trial) {
    const auto tensors = random_tensors(random);
    const SafetensorsMetadata metadata = {{"trial", std::to_string(trial)}, {"\"é\"", ""}};
    std::vector<std::string> contents;
    SafetensorsWriter writer(folder / "a", tensors, metadata);
    for (const SafetensorsDeclaration& tensor : tensors) {
      contents.push_back(random_bytes(random, bytes_of(tensor)));
      const std::string_view bytes = contents.back();
      const std::size_t cut = random.below(bytes.size() + 1);
      writer.write(tensor.name, as_bytes(bytes.substr(0, cut)));
      writer.write(tensor.name, as_bytes(bytes.substr(cut)));
    }
    writer.commit();

    const SafetensorsFile file(folder / "a");
    EXPECT_EQ(file.metadata(), metadata);
    ASSERT_EQ(file.tensors().size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const SafetensorsEntry* entry = file.find(tensors[i].name);
      ASSERT_NE(entry, nullptr);
      EXPECT_EQ(entry->dtype, tensors[i].dtype);
      EXPECT_EQ(entry->shape, tensors[i].shape);
      EXPECT_EQ(text_of(file.bytes(*entry)), contents[i]);
      file.release(*entry);
      EXPECT_EQ(text_of(file.bytes(*entry)), contents[i]) << "released pages are read again";
    }
    EXPECT_EQ(file.find("none of them"), nullptr);
  }
}

TEST(Safetensors, TheBytesWrittenAreThoseTheFormatAsksFor) {
  const TemporaryFolder folder;
  const float values[] = {1.5F, -2.0F, 0.25F};
  SafetensorsWriter writer(folder / "a", {{"x", DType::kF32, {3, 1}}, {"y", DType::kU8, {}}}, {{"k", "v"}});
  writer.write("x", std::as_bytes(std::span(values)));
  writer.write("y", as_bytes("!"));
  writer.commit();

  const std::string file = bytes_of_file(folder / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0U) << "so that the values are aligned";
  ASSERT_EQ(file.size(), 8 + length + 13);
  EXPECT_EQ(nlohmann::json::parse(file.substr(8, length)), nlohmann::json::parse(R"({"__metadata__": {"k": "v"},
                                      "x": {"dtype": "F32", "shape": [3, 1], "data_offsets": [0, 12]},
                                      "y": {"dtype": "U8", "shape": [], "data_offsets": [12, 13]}})"));
  EXPECT_EQ(std::memcmp(file.data() + 8 + length, values, 12), 0);
  EXPECT_EQ(file.back(), '!');
}

TEST(Safetensors, EveryTypeHasTheNameTheFormatGivesIt) {
  const TemporaryFolder folder;
  const std::string names[] = {"F64", "F32", "BF16", "F16", "I64", "I32", "U16", "U8"};
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    SafetensorsWriter(folder / "a", {{"x", kTypes[i], {0}}}).commit();
    EXPECT_EQ(SafetensorsFile(folder / "a").tensors().at(0).dtype_name, names[i]);
  }
}

TEST(Safetensors, TypesWithoutUseHereAreListedAndMeasured) {
  const TemporaryFolder folder;
  put_file(folder / "a", with_header(R"({"mask":{"dtype":"BOOL","shape":[2,2],"data_offsets":[0,4]}})", "abcd"));
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.tensors().at(0).dtype, std::nullopt);
  EXPECT_EQ(text_of(file.bytes(file.tensors()[0])), "abcd");
  put_file(folder / "b", with_header(R"({"mask":{"dtype":"I16","shape":[2,2],"data_offsets":[0,4]}})", "abcd"));
  EXPECT_THROW(SafetensorsFile(folder / "b"), UserError);
}

TEST(Safetensors, EachFaultIsOneClearUserError) {
  const TemporaryFolder folder;
  const std::string x = R"("x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "fewer than the 8"},
      {std::string(8, '\xff'), "the format's limit"},
      {std::string("\x10\0\0\0\0\0\0\0{}", 10), "the file has 10 in all"},
      {with_header("", ""), "does not begin with '{'"},
      {with_header(" {}", ""), "does not begin with '{'"},
      {with_header("{", ""), "not valid JSON at byte"},
      {with_header("{}x", ""), "not valid JSON at byte"},
      {with_header("{\"\xff\":1}", ""), "not valid JSON at byte"},
      {with_header("{" + x + "," + x + "}", "ab"), "'x' is given twice"},
      {with_header(R"({"x":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"),
       "'dtype' is given twice"},
      {with_header(R"({"__metadata__":{"a":"b","a":"c"}})", ""), "'a' is given twice"},
      {with_header(R"({"__metadata__":{"a":1}})", ""), "a number where none belongs"},
      {with_header(R"({"__metadata__":{"a":18446744073709551615}})", ""), "a number where none belongs"},
      {with_header(R"({"x":{"dtype":"U9","shape":[2],"data_offsets":[0,2]}})", "ab"), "unknown dtype 'U9'"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"more":1}})", "ab"), "unknown field 'more'"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2]}})", "ab"), "lacks one of"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0]}})", "ab"), "lacks one of"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2,2]}})", "ab"), "a number where none belongs"},
      {with_header(R"({"x":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "ab"), "a negative number"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}})", "ab"), "2.0 where none belongs"},
      {with_header(R"({"x":{"dtype":"U8","shape":[[2]],"data_offsets":[0,2]}})", "ab"), "a list where none belongs"},
      {with_header(R"({"x":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,2]}})", "ab"),
       "in its 'shape'"},
      {with_header(R"({"x":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", ""),
       "too large to be true"},
      {with_header(R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", "ab"), "its shape and dtype need 3"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", "ab"), "its shape and dtype need 2"},
      {with_header("{" + x + "}", "a"), "ends 1 bytes beyond the file"},
      {with_header("{" + x + "}", "abc"), "1 bytes after the last tensor"},
      {with_header(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc"), "1 bytes before tensor 'x'"},
      {with_header("{" + x + R"(,"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc"), "overlaps another"},
      {with_header("{" + x + R"(,"y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"), "overlaps another"},
      {with_header("[]", ""), "does not begin"},
      {with_header(R"({"x":[]})", ""), "a list where none belongs"},
      {with_header(R"({"x":null})", ""), "null where none belongs"},
  };
  for (const auto& [content, expected] : cases) {
    put_file(folder / "a", content);
    const std::string message = message_of<UserError>([&] { SafetensorsFile file(folder / "a"); });
    EXPECT_THAT(message, HasSubstr(expected)) << content.substr(std::min<std::size_t>(8, content.size()));
    EXPECT_THAT(message, HasSubstr((folder / "a").string()));
  }
  EXPECT_THROW(SafetensorsFile(folder / "missing"), UserError);
}

TEST(Safetensors, EmptyTensorsMayLieAnywhereAndCostNothing) {
  const TemporaryFolder folder;
  put_file(folder / "a", with_header(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
    "b":{"dtype":"F64","shape":[0,9000000],"data_offsets":[0,0]}, "c":{"dtype":"F64","shape":[0],"data_offsets":[2,2]}})",
                                     "ab"));
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.tensors().size(), 3U);
  EXPECT_TRUE(file.bytes(*file.find("b")).empty());
}

TEST(Safetensors, AHostileHeaderTakesTimeInProportionToItsLength) {
  const TemporaryFolder folder;
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) {
    many += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[],"data_offsets":[{},{}]}})", i == 0 ? "" : ",", i, i, i + 1);
  }
  put_file(folder / "a", with_header(many + "}", std::string(100'000, 'x')));
  EXPECT_EQ(SafetensorsFile(folder / "a").tensors().size(), 100'000U);
  put_file(folder / "b", with_header("{\"x\":" + std::string(10'000'000, '['), ""));
  EXPECT_THROW(SafetensorsFile(folder / "b"), UserError);
}

// Comparing each name with all before it takes minutes.
TEST(SafetensorsWriter, AHeaderOfHundredsOfThousandsOfTensorsIsMadeAtOnce) {
  std::vector<SafetensorsDeclaration> tensors;
  for (int i = 0; i < 200'000; ++i) tensors.push_back({fmt::format("layers.{}.weight", i), DType::kU8, {1}});
  const TemporaryFolder folder;
  put_file(folder / "a", safetensors_header_of(tensors) + std::string(tensors.size(), 'x'));
  const SafetensorsFile file(folder / "a");
  EXPECT_TRUE(std::ranges::equal(file.tensors(), tensors, {}, &SafetensorsEntry::name, &SafetensorsDeclaration::name));
}

TEST(SafetensorsWriter, BytesMustComeInTheOrderAndNumberDeclared) {
  const TemporaryFolder folder;
  const std::vector<SafetensorsDeclaration> tensors = {{"x", DType::kU8, {2}}, {"y", DType::kU8, {1}}};
  EXPECT_THROW(SafetensorsWriter(folder / "a", tensors).write("y", as_bytes("a")), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder / "a", tensors).write("x", as_bytes("abc")), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder / "a", tensors).commit(), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder / "a", {{"x", DType::kU8, {1}}, {"y", DType::kF32, {1}}}), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder / "a", {{"x", DType::kU8, {1}}, {"x", DType::kU8, {1}}}), InternalError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left of files that were not finished";
}

}  // namespace
}  // namespace teratron::testing
