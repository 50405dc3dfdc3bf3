// Zip archives: what is stored in them is found, and what is not sound is refused.
#include "checkpoint/torch/zip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/damage.h"
#include "checkpoint/zip_writer.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

const ZipEntries kEntries = {{"a/one", "first"}, {"a/two", ""}, {"a/three", std::string(1000, 'x')}};

std::string_view stored_text(const ZipFile::Entry& entry) {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

class ZipFiles : public ::testing::Test {
 protected:
  ZipFile open(const std::string& bytes) const {
    put_file(folder_ / "a.zip", bytes);
    return ZipFile(folder_ / "a.zip");
  }
  std::string refusal(const std::string& bytes) const {
    return message_of<UserError>([&] { open(bytes); });
  }
  // Whether it is read, and is what was written.
  bool reads(const std::string& bytes) const {
    try {
      const ZipFile file = open(bytes);
      for (const auto& [name, entry] : file.entries()) file.require_intact(name);
      return true;
    } catch (const UserError&) {
      return false;
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(ZipFiles, EveryEntryIsFoundAsItWasStored) {
  for (const bool in_64 : {false, true}) {
    for (const std::string comment : {"", "a comment", "PK\x05\x06"}) {
      const ZipFile file = open(zip_of(kEntries, {.in_64 = in_64, .comment = comment}));
      EXPECT_EQ(file.entries().size(), kEntries.size());
      for (const auto& [name, content] : kEntries) {
        ASSERT_NE(file.find(name), nullptr) << name;
        EXPECT_EQ(stored_text(*file.find(name)), content);
        file.require_intact(name);
        EXPECT_EQ(stored_text(*file.find(name)), content) << "pages that were given back are read again";
      }
      EXPECT_EQ(file.find("a/four"), nullptr);
    }
  }
}

TEST_F(ZipFiles, WhatTorchNeverWritesIsRefused) {
  EXPECT_THAT(refusal(zip_of(kEntries, {.flags = 1})), HasSubstr("compressed or encrypted"));
  EXPECT_THAT(refusal(zip_of(kEntries, {.method = 8})), HasSubstr("compressed or encrypted"));
  EXPECT_THAT(refusal(zip_of({{"a", "1"}, {"a", "2"}})), HasSubstr("'a' is in it twice"));
  EXPECT_THAT(refusal(""), HasSubstr("cut short, or of another kind"));
  EXPECT_THAT(refusal(std::string(70000, 'x')), HasSubstr("cut short, or of another kind"));
}

TEST_F(ZipFiles, AFileCutShortAnywhereIsRefused) {
  for (const bool in_64 : {false, true}) {
    const std::string whole = zip_of(kEntries, {.in_64 = in_64});
    ASSERT_TRUE(reads(whole));
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_FALSE(reads(whole.substr(0, bytes))) << bytes;
  }
}

TEST_F(ZipFiles, NoBitOfAnEntryChangesUnseen) {
  const std::string whole = zip_of({{"a", "some bytes"}});
  const std::size_t begin = whole.find("some bytes");
  for (std::size_t i = 0; i < 80; ++i) {
    std::string changed = whole;
    changed[begin + i / 8] = static_cast<char>(changed[begin + i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(reads(changed));
  }
  EXPECT_THAT(message_of<UserError>([&] {
                std::string changed = whole;
                changed[begin] = 'S';
                open(changed).require_intact("a");
              }),
              HasSubstr("is damaged: the bytes of 'a'"));
}

TEST_F(ZipFiles, AnyFlippedBitIsSurvived) {
  for (const bool in_64 : {false, true}) {
    const std::string whole = zip_of({{"a/one", "first"}, {"b", "second"}}, {.in_64 = in_64});
    for (std::size_t i = 0; i < 8 * whole.size(); ++i) {
      std::string changed = whole;
      changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
      reads(changed);  // a UserError, or a reading within the file, as the sanitizer sees
    }
  }
}

}  // namespace
}  // namespace teratron::testing
