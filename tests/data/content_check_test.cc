// The check of a corpus at a run's start, and of one that changes under the run.
#include "data/indexed/content_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/indexed/corpus_sidecar.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kVocab = 500;

class CheckedCorpus : public ::testing::Test {
 protected:
  // Documents of random ids below 500, in u16 or, with `wide`, in i32.
  fs::path write(const std::string& name, std::int64_t tokens, std::uint64_t seed = 1, bool wide = false) const {
    IndexedDatasetWriter writer(folder_ / name, wide ? TokenType::kI32 : TokenType::kU16);
    std::mt19937_64 random(seed);
    std::mt19937_64 lengths(7);  // those of every corpus
    for (std::int64_t left = tokens; left > 0;) {
      const std::int64_t length = std::min(left, 1 + static_cast<std::int64_t>(lengths() % 200000));
      std::vector<std::int32_t> ids(static_cast<std::size_t>(length));
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % kVocab);
      const std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
      writer.add_stored_sequences(std::array{static_cast<std::int32_t>(length)});
      writer.add_stored_bytes(wide ? std::as_bytes(std::span(ids)) : std::as_bytes(std::span(narrow)));
      writer.end_document();
      left -= length;
    }
    writer.commit(identity_of(byte_tokenizer(), "tok"));
    return folder_ / name;
  }
  static void overwrite(const fs::path& path, std::int64_t at, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at) << bytes;
    ASSERT_TRUE(file.good());
  }
  static std::string refusal(const fs::path& prefix, std::uint64_t seed = 0) {
    try {
      check_content(IndexedDataset::open(prefix), kVocab, seed);
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  }
  void change_sidecar(const fs::path& prefix, const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json json = nlohmann::json::parse(read_file(sidecar_path(prefix)));
    change(json);
    write_file_atomically(sidecar_path(prefix), json.dump());
  }
  static void drop_blocks(nlohmann::json& json) {  // as versions without them wrote it
    json["bin"].erase("block_bytes");
    json["bin"].erase("xxh3_low_32_of_blocks");
  }
  TemporaryFolder folder_;
};

TEST_F(CheckedCorpus, EveryChangedByteOfASmallOneIsSeenWithAndWithoutChecksumsOfBlocks) {
  const fs::path corpus = write("c", 3'000'000);
  EXPECT_THAT(refusal(corpus), IsEmpty());
  const auto bytes = static_cast<std::int64_t>(fs::file_size(bin_path(corpus)));
  const std::string whole = read_file(bin_path(corpus));
  for (const bool is_old : {false, true}) {
    if (is_old) change_sidecar(corpus, drop_blocks);
    EXPECT_THAT(refusal(corpus), IsEmpty());
    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{1} << 20, bytes / 3, bytes - 2}) {
      const auto place = static_cast<std::size_t>(at);
      overwrite(bin_path(corpus), at, whole.substr(place, 2) == std::string(2, '\0') ? "\1" : std::string(2, '\0'));
      EXPECT_THAT(refusal(corpus), AllOf(HasSubstr("c.bin' is not what was written"), HasSubstr("data verify"))) << at;
      overwrite(bin_path(corpus), at, whole.substr(place, 2));
    }
  }
}

TEST_F(CheckedCorpus, OtherFilesOfTheSameSizeUnderItsNameAreRefused) {
  const fs::path corpus = write("c", 100'000), other = write("other", 100'000, 2);
  fs::copy_file(bin_path(other), bin_path(corpus), fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(corpus), HasSubstr("c.bin' is not what was written: bytes 0 to 200000 differ"));
  write("c", 100'000);
  overwrite(idx_path(corpus), 17, "\3");  // i16 for u16
  EXPECT_THAT(refusal(corpus), HasSubstr("c.idx' is not what was written"));
}

// One in ten blocks is damaged.
TEST_F(CheckedCorpus, HalfALargeOneIsMissedByNoDraw) {
  const fs::path corpus = write("c", 10'000'000);
  const auto refusal_by = [&](std::uint64_t seed) {
    return message_of<UserError>([&] { check_content(IndexedDataset::open(corpus), kVocab, seed, 2); });
  };
  overwrite(bin_path(corpus), 10'000'000, std::string(10'000'000, '\0'));
  for (const std::uint64_t seed : {0, 1, 2}) EXPECT_THAT(refusal_by(seed), HasSubstr("differ")) << seed;
}

TEST_F(CheckedCorpus, OneWithoutASidecarIsTakenAndItsIdsAreLookedAt) {
  const fs::path corpus = write("c", 300'000);
  fs::remove(sidecar_path(corpus));
  overwrite(bin_path(corpus), 0, std::string(1000, '\0'));
  EXPECT_THAT(refusal(corpus), IsEmpty());
  overwrite(bin_path(corpus), 400'000, "\xff\xff");
  EXPECT_THAT(refusal(corpus), AllOf(HasSubstr("token id 65535 at position 200000 (document "), HasSubstr("c.bin'")));
}

TEST_F(CheckedCorpus, ASidecarWhoseBlocksAreDamagedIsRefused) {
  const fs::path corpus = write("c", 1000);
  for (const char* const digits : {"", "0123456", "0123456g", "0123456789abcdef"}) {
    change_sidecar(corpus, [&](nlohmann::json& json) { json["bin"]["xxh3_low_32_of_blocks"] = digits; });
    EXPECT_THAT(message_of<UserError>([&] { read_sidecar(corpus); }), HasSubstr("xxh3_low_32_of_blocks")) << digits;
  }
  change_sidecar(corpus, [](nlohmann::json& json) { json["bin"]["xxh3_low_32_of_blocks"] = "01234567"; });
  EXPECT_THAT(verify_corpus(corpus).faults, ::testing::Contains(HasSubstr("it differs first within bytes 0 to 2000")));
}

TEST_F(CheckedCorpus, NoIdOutsideTheVocabularyIsEverReadHoweverTokensAreStored) {
  for (const TokenType type :
       {TokenType::kU8, TokenType::kI8, TokenType::kI16, TokenType::kI32, TokenType::kI64, TokenType::kU16}) {
    const fs::path corpus = folder_ / fmt::format("of_{}", name_of(type));
    IndexedDatasetWriter writer(corpus, type);
    const bool has_signs = with_token_type(type, [&]<class T>(T) {
      std::vector<T> ids(9000, T{7});
      ids[5000] = T{100};
      if (std::is_signed_v<T>) ids[6000] = static_cast<T>(-1);
      writer.add_stored_sequences(std::array{4000, 0, 5000});
      writer.add_stored_bytes(std::as_bytes(std::span<const T>(ids)));
      return std::is_signed_v<T>;
    });
    writer.end_document();
    writer.commit();
    const IndexedDataset dataset = IndexedDataset::open(corpus);
    Document ids(9000);
    dataset.with_vocabulary(101).read(0, std::span(ids).first(6000));
    EXPECT_EQ(ids[5000], 100);
    EXPECT_THAT(message_of<UserError>([&] { dataset.with_vocabulary(100).read(0, ids); }),
                HasSubstr("holds token id 100 at position 5000"));
    for (const std::int64_t vocab_size : {std::int64_t{101}, std::int64_t{1} << 31}) {
      if (!has_signs) dataset.with_vocabulary(vocab_size).read(0, ids);
      if (!has_signs) continue;
      EXPECT_THAT(message_of<UserError>([&] { dataset.with_vocabulary(vocab_size).read(0, ids); }),
                  HasSubstr("holds -1 at token 6000"));
    }
  }
}

TEST_F(CheckedCorpus, OneThatIsOverwrittenUnderTheReaderIsReportedByPlaceDocumentAndId) {
  const fs::path corpus = write("c", 400'000);
  const IndexedDataset dataset = IndexedDataset::open(corpus).with_vocabulary(kVocab);
  Document ids(1000);
  dataset.read(200'000, ids);
  overwrite(bin_path(corpus), 400'200, "\xf4\x01");  // 500
  const std::int64_t document = [&] {
    std::int64_t number = 0;
    while (dataset.document(number).end <= 200'100) ++number;
    return number;
  }();
  EXPECT_THAT(message_of<UserError>([&] { dataset.read(200'000, ids); }),
              AllOf(HasSubstr("c.bin' holds token id 500 at position 200100"),
                    HasSubstr(fmt::format("(document {})", document)), HasSubstr("has 500 tokens")));
}

TEST_F(CheckedCorpus, OneThatIsCutUnderTheReaderIsAnErrorAndNoSignal) {
  const fs::path corpus = write("c", 400'000);
  const IndexedDataset dataset = IndexedDataset::open(corpus);
  fs::resize_file(bin_path(corpus), 1000);
  fs::resize_file(idx_path(corpus), 0);  // which is in memory
  Document ids(1000);
  EXPECT_THAT(message_of<EnvironmentError>([&] { dataset.read(200'000, ids); }), HasSubstr("c.bin' was cut short"));
}

TEST_F(CheckedCorpus, ItsFingerprintIsThatOfItsContentAlone) {
  const std::int64_t tokens = 3'000'000;
  const fs::path corpus = write("c", tokens);
  const std::int64_t expected = content_fingerprint(IndexedDataset::open(corpus));
  EXPECT_GE(expected, 0);
  EXPECT_EQ(content_fingerprint(IndexedDataset::open(write("wide", tokens, 1, true))), expected);
  EXPECT_NE(content_fingerprint(IndexedDataset::open(write("other", tokens, 2))), expected);
  overwrite(bin_path(corpus), tokens, std::string(static_cast<std::size_t>(tokens), '\0'));  // its second half
  EXPECT_NE(content_fingerprint(IndexedDataset::open(corpus)), expected);
}

TEST_F(CheckedCorpus, EveryTokenOfASmallOneAndEveryLengthCountInItsFingerprint) {
  std::set<std::int64_t> found;
  write_dataset(folder_ / "a", {{1, 2, 3}, {}, {4, 5}}, 100);
  write_dataset(folder_ / "b", {{1, 2, 3}, {}, {4, 6}}, 100);
  write_dataset(folder_ / "c", {{1, 2}, {}, {3, 4, 5}}, 100);
  write_dataset(folder_ / "first", {{1, 2, 3}}, 100);
  write_dataset(folder_ / "second", {{}, {4, 5}}, 100);
  for (const char* const name : {"a", "b", "c"})
    found.insert(content_fingerprint(IndexedDataset::open(folder_ / name)));
  EXPECT_EQ(found.size(), 3U);
  const std::vector<fs::path> shards = {folder_ / "first", folder_ / "second"};
  EXPECT_EQ(content_fingerprint(IndexedDataset::open(shards)),
            content_fingerprint(IndexedDataset::open(folder_ / "a")));
}

// `touch`, a backup that restores times, another owner: nothing that a run has to end for.
TEST_F(CheckedCorpus, OneThatIsTouchedUnderTheReaderIsReadOn) {
  for (const bool has_sidecar : {true, false}) {
    const fs::path corpus = write(has_sidecar ? "c" : "d", 4'000'000);
    if (!has_sidecar) fs::remove(sidecar_path(corpus));
    const IndexedDataset dataset = IndexedDataset::open(corpus);
    Document before(1000), ids(1000);
    dataset.read(200'000, before);
    const std::vector<std::function<void()>> changes = {
        [&] { fs::last_write_time(bin_path(corpus), fs::file_time_type::clock::now()); },
        [&] { fs::permissions(bin_path(corpus), fs::perms::owner_read); },
        [&] { fs::permissions(bin_path(corpus), fs::perms::owner_all); },
        [&] { fs::rename(write("other", 4'000'000, 9).replace_extension(".bin"), bin_path(corpus)); }};
    for (const auto& change : changes) {
      ::usleep(20000);
      change();
      dataset.read(200'000, ids);
      EXPECT_EQ(ids, before);
    }
  }
}

TEST_F(CheckedCorpus, OneThatIsOverwrittenByOtherIdsUnderTheReaderIsReportedThoughItsTimeIsSetBack) {
  for (const std::int64_t at : {0, 999'998, 4'000'000, 7'999'998}) {
    for (const bool sets_time_back : {true, false}) {
      const fs::path corpus = write("c", 4'000'000);
      const IndexedDataset dataset = IndexedDataset::open(corpus);
      const auto time = fs::last_write_time(bin_path(corpus));
      Document ids(1000);
      dataset.read(200'000, ids);
      ::usleep(20000);
      const std::string there = read_file(bin_path(corpus)).substr(static_cast<std::size_t>(at), 1);
      overwrite(bin_path(corpus), at, there == "\x01" ? "\x02" : "\x01");
      if (sets_time_back) fs::last_write_time(bin_path(corpus), time);
      EXPECT_THAT(message_of<EnvironmentError>([&] { dataset.read(200'000, ids); }),
                  AllOf(HasSubstr("was changed while it was read"), HasSubstr("something has written to it")))
          << at;
    }
  }
}

TEST_F(CheckedCorpus, DamageOfTheIndexIsReportedOfTheIndexWhateverItLooksLike) {
  const fs::path corpus = write("c", 1000);
  const std::string whole = read_file(idx_path(corpus));
  for (std::size_t at = 17; at < whole.size(); ++at) {  // the type code and all that follows it
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 12);
    write_file_atomically(idx_path(corpus), damaged);
    EXPECT_THAT(refusal(corpus), AllOf(HasSubstr("c.idx'"), HasSubstr("checksum"))) << at;
  }
}

TEST_F(CheckedCorpus, ASidecarThatSaysNothingIsReportedWithWhatToDo) {
  const fs::path corpus = write("c", 1000);
  for (const char* const text : {"{}", R"({"format": null})", R"({"format": "another"})"}) {
    write_file_atomically(sidecar_path(corpus), text);
    EXPECT_THAT(message_of<UserError>([&] { read_sidecar(corpus); }), HasSubstr("move it away, or tokenise"));
  }
}

TEST_F(CheckedCorpus, NoDeviceNorPipeIsThePrefixOfOne) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& prefix : {pipe, fs::path("-"), fs::path("/dev/null")}) {
    EXPECT_THAT(message_of<UserError>([&] { IndexedDatasetWriter(prefix, TokenType::kU16); }),
                HasSubstr("a corpus is several files"));
    EXPECT_FALSE(fs::exists(prefix.string() + ".bin.partial"));
  }
}

}  // namespace
}  // namespace teratron::testing
