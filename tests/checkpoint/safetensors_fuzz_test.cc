// Files that a disk, a network or a person has spoilt: reading them is a UserError or a sound reading, never a crash
// and never bytes from outside of the file. Worth most under the address sanitizer.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/damage.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron::testing {
namespace {

std::string sound_file(const std::filesystem::path& path) {
  const std::string values = "0123456789abcdefghijklmnop";
  SafetensorsWriter writer(path,
                           {{"weight", DType::kF32, {2, 3}}, {"none", DType::kF16, {0, 4}}, {"bias", DType::kU8, {2}}},
                           {{"format", "pt"}});
  writer.write("weight", std::as_bytes(std::span(values).first(24)));
  writer.write("bias", std::as_bytes(std::span(values).last(2)));
  writer.commit();
  return bytes_of_file(path);
}

// True if the file was accepted; then every byte of every tensor is read.
bool reads(const std::filesystem::path& path) {
  try {
    const SafetensorsFile file(path);
    unsigned sum = 0;
    for (const SafetensorsEntry& tensor : file.tensors()) {
      for (const std::byte byte : file.bytes(tensor)) sum += std::to_integer<unsigned>(byte);
      EXPECT_EQ(file.find(tensor.name), &tensor);
    }
    return sum < ~0U;
  } catch (const UserError&) {
    return false;
  }
}

TEST(SafetensorsFuzz, AFileCutShortAnywhereIsRefused) {
  const TemporaryFolder folder;
  const std::string sound = sound_file(folder / "a");
  ASSERT_TRUE(reads(folder / "a"));
  for (std::size_t length = 0; length < sound.size(); ++length) {
    put_file(folder / "a", sound.substr(0, length));
    EXPECT_FALSE(reads(folder / "a")) << length << " bytes of " << sound.size();
  }
  put_file(folder / "a", sound + "x");
  EXPECT_FALSE(reads(folder / "a"));
}

TEST(SafetensorsFuzz, AnyBitOfTheHeaderFlippedIsSurvived) {
  const TemporaryFolder folder;
  const std::string sound = sound_file(folder / "a");
  const std::size_t header = SafetensorsFile(folder / "a").header().size();
  int refused = 0;
  for (std::size_t byte = 0; byte < header; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = sound;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      put_file(folder / "a", damaged);
      refused += reads(folder / "a") ? 0 : 1;
    }
  }
  EXPECT_GT(refused, static_cast<int>(header) * 8 / 2) << "most damage to a header cannot be read as another file";
}

TEST(SafetensorsFuzz, RandomEditsAreSurvived) {
  const TemporaryFolder folder;
  const std::string sound = sound_file(folder / "a");
  const std::string alphabet = "{}[]\",:0123456789.-eE\\ utfn\xff";
  RandomSequence random({.seed = 7});
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = sound;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(damaged.size()), length = random.below(6);
      const char byte = alphabet[random.below(alphabet.size())];
      switch (random.below(4)) {
        case 0: damaged[at] = byte; break;
        case 1: damaged.insert(at, 1, byte); break;
        case 2: damaged.erase(at, length); break;
        default: damaged.insert(at, damaged.substr(random.below(damaged.size()), length)); break;
      }
      if (damaged.empty()) break;
    }
    put_file(folder / "a", damaged);
    reads(folder / "a");
  }
}

}  // namespace
}  // namespace teratron::testing
