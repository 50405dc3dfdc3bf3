// Files of torch.save: PyTorch's own (tests/golden/foreign), ones made here byte by byte, and hostile ones.
#include "checkpoint/torch/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "checkpoint/damage.h"
#include "checkpoint/zip_writer.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kTorchFiles = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/foreign";
const fs::path kPath = "a.pt";

// One value; `bytes` must outlive it.
Pickle read(const std::string& bytes) { return Pickle(bytes, kPath); }

std::string refusal_of(const std::string& value) {
  const std::string bytes = pickle_of(value);
  return message_of<UserError>([&] { read(bytes); });
}

TEST(Pickle, EveryKindOfNumberIsRead) {
  const std::vector<std::pair<std::string, std::int64_t>> integers = {
      {"K\xff", 255},
      {"M\x02\x01", 258},
      {pickled_integer(-3), -3},
      {std::string("\x8a\x00", 2), 0},
      {"\x8a\x01\xff", -1},
      {std::string("\x8a\x02\xff\x00", 4), 255},
      {"\x8a\x05" + std::string("\x00\x00\x00\x00\x80", 5), -(std::int64_t{1} << 39)},
      {"\x8a\x08" + std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), std::numeric_limits<std::int64_t>::max()},
  };
  for (const auto& [bytes, expected] : integers) {
    const std::string whole = pickle_of(bytes);
    const Pickle pickle = read(whole);
    EXPECT_TRUE(pickle.content().is(PickleKind::kInteger));
    EXPECT_EQ(pickle.content().integer, expected);
    EXPECT_EQ(pickle.content().number, static_cast<double>(expected));
  }
  const std::string large = pickle_of("\x8a\x09" + std::string("\x00\x00\x00\x00\x00\x00\x00\x00\x01", 9));
  EXPECT_EQ(read(large).content().number, 0x1p64);
  const std::string number = pickle_of("G" + std::string("\x3f\xf8\x00\x00\x00\x00\x00\x00", 8));
  EXPECT_EQ(read(number).content().number, 1.5);
}

TEST(Pickle, ALaterKeyReplacesAnEarlierOne) {
  const std::string bytes = pickle_of("}" + pickled_text("a") + "K\x01s" + pickled_text("a") + "K\x02s");
  EXPECT_EQ(read(bytes).content().find("a")->integer, 2);
  EXPECT_EQ(read(bytes).content().find("b"), nullptr);
}

TEST(Pickle, AListMayHoldItself) {
  const std::string bytes =
      pickle_of(std::string("]q\x00h\x00"
                            "a",
                            6));
  const Pickle pickle = read(bytes);
  EXPECT_EQ(pickle.content().items.at(0), &pickle.content());
}

TEST(Pickle, NamesThatAreNotDataAreRefused) {
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"posix", "system"},
                                                        {"os", "system"},
                                                        {"subprocess", "Popen"},
                                                        {"builtins", "eval"},
                                                        {"__builtin__", "getattr"},
                                                        {"torch", "load"},
                                                        {"torch._utils", "_rebuild_tensor_v2 "},
                                                        {"megatro", "n"},
                                                        {"", ""}}) {
    EXPECT_THAT(refusal_of(pickled_name(module, name) + pickled_text("touch harm") + "\x85R"),
                HasSubstr(module + "." + name + ", which is not data"));
  }
}

TEST(Pickle, WhatNoPickleHoldsIsRefused) {
  EXPECT_THAT(refusal_of(""), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal_of("a"), HasSubstr("values are missing"));
  EXPECT_THAT(refusal_of("t"), HasSubstr("a mark is missing"));
  EXPECT_THAT(refusal_of("(0"), HasSubstr("opcode 0x30 at byte 3"));
  EXPECT_THAT(refusal_of("h\x05"), HasSubstr("refers to a value that is not there"));
  EXPECT_THAT(refusal_of("K\x01K\x02"
                         "a"),
              HasSubstr("adds to what is no container"));
  EXPECT_THAT(refusal_of("}(K\x01u"), HasSubstr("adds to what is no container"));
  EXPECT_THAT(refusal_of("K\x01)R"), HasSubstr("calls what is no function"));
  EXPECT_THAT(message_of<UserError>([] { read("\x80\x04N."); }), HasSubstr("not of protocol 2"));
  const std::string large(Pickle::kMostBytes + 1, 'N');
  EXPECT_THAT(message_of<UserError>([&] { read(large); }), HasSubstr("are the most"));
}

TEST(Pickle, OneOfPyTorchsCutShortAnywhereIsRefused) {
  const ZipFile zip(kTorchFiles / "nanogpt_strides.pt");
  const auto bytes = zip.find("nanogpt_strides/data.pkl")->bytes;
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_TRUE(read(whole).content().is(PickleKind::kDictionary));
  for (std::size_t count = 0; count < whole.size(); ++count) {
    const std::string part = whole.substr(0, count);
    EXPECT_THROW(read(part), UserError) << count;
  }
}

TEST(Pickle, AnyFlippedBitIsSurvived) {
  const ZipFile zip(kTorchFiles / "nanogpt_strides.pt");
  const auto bytes = zip.find("nanogpt_strides/data.pkl")->bytes;
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    try {
      read(changed);
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(TorchFile, HoldsWhatPyTorchSaved) {
  const TorchFile file(kTorchFiles / "nanogpt.pt");
  const PickleValue& content = file.content();
  EXPECT_EQ(content.find("iter_num")->integer, 2000);
  EXPECT_EQ(content.find("config")->find("out_dir")->text, "out");
  EXPECT_EQ(content.find("config")->find("learning_rate")->number, 1e-3);
  EXPECT_TRUE(content.find("config")->find("compile")->is(PickleKind::kBool));
  EXPECT_TRUE(content.find("optimizer")->find("param_groups")->is(PickleKind::kList));
  const auto best = file.tensor(*content.find("best_val_loss"), "best_val_loss");
  ASSERT_TRUE(best);
  EXPECT_THAT(best->shape, IsEmpty());
  float value = 0;
  ASSERT_EQ(best->bytes.size(), sizeof value);
  std::memcpy(&value, best->bytes.data(), sizeof value);
  EXPECT_EQ(value, 1.25F);
  EXPECT_FALSE(file.tensor(*content.find("iter_num"), "iter_num"));
  // Python's generator of random numbers, seeded with 1, begins with 2^31.
  const TorchFile megatron(kTorchFiles / "megatron_3.pt");
  const PickleValue& states = *megatron.content().find("rng_state")->items.at(0);
  EXPECT_EQ(states.find("random_rng_state")->items.at(1)->items.at(0)->integer, std::int64_t{1} << 31);
  EXPECT_EQ(megatron.content().find("args")->state()->find("data_path")->items.at(0)->text, "corpus_text_document");
}

// A file that PyTorch wrote before it wrote archives, beside the same tensor in an archive.
TEST(TorchFile, OfBeforeArchivesHoldsTheSame) {
  const auto bytes_of_tensor = [](const TorchFile& file, const PickleValue& value, std::vector<std::int64_t>& shape) {
    const auto tensor = file.tensor(value, "a");
    if (!tensor) return std::string();
    shape = tensor->shape;
    file.require_intact(*tensor);
    std::string bytes;
    file.pass_on(*tensor, [&](std::span<const std::byte> piece) {
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    return bytes;
  };
  const TorchFile old(kTorchFiles / "old_format.pt"), archive(kTorchFiles / "nanogpt.pt");
  std::vector<std::int64_t> shape, expected_shape;
  const std::string bytes = bytes_of_tensor(old, *old.content().find("model"), shape);
  EXPECT_EQ(bytes,
            bytes_of_tensor(archive, *archive.content().find("model")->find("transformer.wpe.weight"), expected_shape));
  EXPECT_EQ(shape, expected_shape);
  EXPECT_THAT(bytes, ::testing::Not(IsEmpty()));
}

TEST(TorchFile, OfBeforeArchivesIsRefusedWhereItIsCutAndSurvivesAnyFlippedBit) {
  const std::string whole = bytes_of_file(kTorchFiles / "old_format.pt");
  const TemporaryFolder folder;
  for (std::size_t count = 0; count < whole.size(); ++count) {
    put_file(folder / "a.pt", whole.substr(0, count));
    EXPECT_THROW(TorchFile(folder / "a.pt"), UserError) << count;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    put_file(folder / "a.pt", changed);
    try {
      const TorchFile file(folder / "a.pt");
      if (const PickleValue* const value = file.content().find("model")) file.tensor(*value, "model");
    } catch (const UserError&) {
      continue;
    }
  }
  std::string other = whole;
  const std::size_t flag = other.find("little_endian");
  const std::size_t order = other.find('\x88', flag);
  ASSERT_NE(order, std::string::npos);
  other[order] = '\x89';
  put_file(folder / "a.pt", other);
  EXPECT_THAT(message_of<UserError>([&] { TorchFile(folder / "a.pt"); }), HasSubstr("in the other order"));
}

class TorchTensors : public ::testing::Test {
 protected:
  // The values of a tensor of a file with eight numbers.
  std::vector<float> values(const std::string& tensor) const {
    std::string storage;
    for (float number = 0; number < 8; ++number) storage += little(number);
    put_file(folder_ / "a.pt", torch_file_of(tensor, {{"0", storage}}));
    const TorchFile file(folder_ / "a.pt");
    const auto found = file.tensor(file.content(), "weight");
    if (!found) return {};
    std::string bytes;
    file.pass_on(*found, [&](std::span<const std::byte> piece) {
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    std::vector<float> result(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  std::string refusal(const std::string& tensor) const {
    return message_of<UserError>([&] { values(tensor); });
  }

  const TemporaryFolder folder_;
};

TEST_F(TorchTensors, StridesSayWhereValuesAre) {
  EXPECT_THAT(values(pickled_tensor("0", 8, 0, {2, 3}, {3, 1})), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values(pickled_tensor("0", 8, 2, {2, 3}, {3, 1})), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(values(pickled_tensor("0", 8, 1, {2, 3}, {1, 2})), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(values(pickled_tensor("0", 8, 0, {2, 2}, {4, 1})), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(values(pickled_tensor("0", 8, 3, {}, {})), ElementsAre(3));
  EXPECT_THAT(values(pickled_tensor("0", 8, 0, {1, 3}, {77, 1})), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(pickled_tensor("0", 8, 7, {3}, {0})), ElementsAre(7, 7, 7));
  EXPECT_THAT(values(pickled_tensor("0", 8, 9, {0, 3}, {3, 1})), IsEmpty()) << "PyTorch has it anywhere";
}

TEST_F(TorchTensors, ValuesBeyondTheStorageAreRefused) {
  constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
  for (const std::string& tensor :
       {pickled_tensor("0", 8, 0, {3, 3}, {3, 1}), pickled_tensor("0", 8, 6, {3}, {1}),
        pickled_tensor("0", 8, 0, {9}, {0}), pickled_tensor("0", 8, 0, {kLargest, kLargest, kLargest}, {0, 0, 0}),
        pickled_tensor("0", 8, 0, {2, 2, 2}, {kLargest, kLargest, kLargest})}) {
    EXPECT_THAT(refusal(tensor), HasSubstr("more values than its storage of 32 bytes, or they lie beyond that"));
  }
  std::string farthest = pickled_tensor("0", 8, 0, {2}, {kLargest});
  const std::string stride = pickled_integer(kLargest);
  farthest.replace(farthest.find(stride), stride.size(),
                   "\x8a\x08" + little(std::numeric_limits<std::int64_t>::max()));  // a number of 8 bytes
  EXPECT_THAT(refusal(farthest), HasSubstr("or they lie beyond that"));
  EXPECT_THAT(refusal(pickled_tensor("0", 8, -1, {2}, {1})), HasSubstr("a storage and a place in it"));
  EXPECT_THAT(refusal(pickled_tensor("0", 8, 0, {-2}, {1})), HasSubstr("its shape or its strides"));
  EXPECT_THAT(refusal(pickled_tensor("0", 8, 0, {2}, {-1})), HasSubstr("its shape or its strides"));
  EXPECT_THAT(refusal(pickled_tensor("0", 8, 0, {2, 2}, {1})), HasSubstr("its shape or its strides"));
  EXPECT_THAT(refusal(pickled_tensor("1", 8, 0, {2}, {1})), HasSubstr("its storage '1' is not in the file"));
  EXPECT_THAT(refusal(pickled_tensor("0", 8, 0, {2}, {1}, "Size")), HasSubstr("its storage is a torch.Size"));
}

// As torch.save writes a tensor that is the negative of its storage.
TEST_F(TorchTensors, NegatedOnesAreRefused) {
  std::string tensor = pickled_tensor("0", 8, 0, {2}, {1});
  const std::string no_bits = tensor.substr(0, tensor.size() - 2) + "}tR";
  EXPECT_THAT(values(no_bits), ElementsAre(0, 1));
  tensor.insert(tensor.size() - 2, "}" + pickled_text("neg") + "\x88s");
  EXPECT_THAT(refusal(tensor), HasSubstr("negated or conjugated"));
}

TEST_F(TorchTensors, OtherFilesAreNamedForWhatTheyAre) {
  const auto refusal_of_file = [&](const std::string& bytes) {
    put_file(folder_ / "a.pt", bytes);
    return message_of<UserError>([&] { TorchFile(folder_ / "a.pt"); });
  };
  EXPECT_THAT(refusal_of_file(zip_of({{"a/b", "c"}})), HasSubstr("a zip archive without data.pkl"));
  EXPECT_THAT(refusal_of_file(torch_file_of("N", {}, "big")), HasSubstr("in the other order"));
  std::string damaged = torch_file_of("N" + pickled_text("abcdef"));
  damaged[damaged.find("abcdef")] = 'A';
  EXPECT_THAT(refusal_of_file(damaged), HasSubstr("is damaged: the bytes of 'archive/data.pkl'"));
}

TEST_F(TorchTensors, AHostileFileIsRefusedAndRunsNothing) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_THAT(message_of<UserError>([] { TorchFile(kTorchFiles / "hostile.pt"); }),
              HasSubstr("posix.system, which is not data"));
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(folder_ / "harm"));
}

}  // namespace
}  // namespace teratron::testing
