// Every thread, process and later run finds the algorithms that were chosen, and no other machine does; an unusable
// file stops no run.
#include "ops/algorithms/algorithm_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kMachine = "A card, driver 13000, cuBLASLt 130101";

Algorithm algorithm(int number) {
  Algorithm made{.microseconds = 10.0 / 3 + number};
  for (std::size_t i = 0; i < made.bytes.size(); ++i) made.bytes[i] = static_cast<std::byte>(7 * i + 31U * number);
  return made;
}

std::string key(int number) { return "bf16 to f32, m " + std::to_string(number); }

class AlgorithmCaches : public ::testing::Test {
 protected:
  AlgorithmCache open() const { return AlgorithmCache(file_, kMachine); }
  Algorithms on_disk() const { return algorithms_from_text(read_file(file_), kMachine).value(); }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "new" / "algorithms.json";
};

TEST(AlgorithmText, ReadsBackExactly) {
  const Algorithms algorithms = {{key(1), algorithm(1)}, {key(2), algorithm(200)}, {key(3), {}}};
  EXPECT_EQ(algorithms_from_text(text_of(algorithms, kMachine), kMachine), algorithms);
  EXPECT_EQ(algorithms_from_text(text_of({}, kMachine), kMachine), Algorithms{});
}

TEST(AlgorithmText, IsUselessFromAnotherMachineOrFormat) {
  const std::string text = text_of({{key(1), algorithm(1)}}, kMachine);
  EXPECT_EQ(algorithms_from_text(text, "A card, driver 13000, cuBLASLt 130102"), std::nullopt);
  const std::string former = std::string("teratron-algorithms-1\n") + kMachine + "\n";
  EXPECT_EQ(algorithms_from_text(former + "xxh3_64 " + checksum_of(former) + "\n", kMachine), std::nullopt);
}

TEST(AlgorithmText, NoDamagedByteAndNoMissingEndGoesUnseen) {
  const std::string text = text_of({{key(1), algorithm(1)}, {key(2), algorithm(2)}}, kMachine);
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(algorithms_from_text(text.substr(0, i), kMachine), std::nullopt) << i;
    for (const char bit : {'\x01', '\x02', '\x40'}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ bit);
      EXPECT_EQ(algorithms_from_text(damaged, kMachine), std::nullopt) << i;
    }
  }
}

// With a checksum that fits.
TEST(AlgorithmText, EntriesThatAreNoAlgorithmsAreRefused) {
  using Json = nlohmann::json;
  const Json sound = Json::parse(text_of({{key(1), algorithm(1)}}, kMachine));
  const auto is_read = [&](const Json& entry) {
    Json file = sound;
    file["algorithms"][key(1)] = entry;
    file["xxh3_64"] = checksum_of(file["algorithms"].dump(1));
    return algorithms_from_text(file.dump(1), kMachine).has_value();
  };
  const Json entry = sound["algorithms"][key(1)];
  EXPECT_TRUE(is_read(entry));
  Json shorter = entry, longer = entry;
  shorter["words"].erase(7);
  longer["words"].push_back(1);
  for (const Json& wrong : {Json(), Json(1), Json::object(), Json{{"microseconds", 1}}, Json{{"words", entry["words"]}},
                            Json{{"microseconds", "one"}, {"words", entry["words"]}},
                            Json{{"microseconds", 1.5}, {"words", {1, 2, 3, 4, 5, 6, 7, -8}}}, shorter, longer}) {
    EXPECT_FALSE(is_read(wrong)) << wrong;
  }
}

TEST_F(AlgorithmCaches, KeepWhatWasChosenForLaterRuns) {
  EXPECT_EQ(open().find(key(1)), std::nullopt);
  {
    AlgorithmCache cache = open();
    EXPECT_EQ(cache.settle(key(1), algorithm(1)), algorithm(1));
    EXPECT_EQ(cache.settle(key(2), algorithm(2)), algorithm(2));
    EXPECT_EQ(cache.find(key(1)), algorithm(1));
  }
  EXPECT_EQ(open().find(key(1)), algorithm(1));
  EXPECT_EQ(open().find(key(2)), algorithm(2));
  EXPECT_EQ(open().find(key(3)), std::nullopt);
}

TEST_F(AlgorithmCaches, TheFirstToSettleDecidesAndNobodysChoiceIsLost) {
  AlgorithmCache one = open(), other = open();  // neither has read what the other writes
  EXPECT_EQ(one.settle(key(1), algorithm(1)), algorithm(1));
  EXPECT_EQ(other.settle(key(1), algorithm(100)), algorithm(1));
  EXPECT_EQ(other.find(key(1)), algorithm(1));
  other.settle(key(2), algorithm(2));
  one.settle(key(3), algorithm(3));
  EXPECT_EQ(on_disk(), (Algorithms{{key(1), algorithm(1)}, {key(2), algorithm(2)}, {key(3), algorithm(3)}}));
}

TEST_F(AlgorithmCaches, OnlyTheUnusableOneIsReplaced) {
  AlgorithmCache one = open();
  one.settle(key(1), algorithm(1));
  AlgorithmCache other = open();
  EXPECT_EQ(one.settle(key(1), algorithm(2), algorithm(1)), algorithm(2));
  EXPECT_EQ(on_disk().at(key(1)), algorithm(2));
  // Another that found it unusable too takes what has come in its place.
  EXPECT_EQ(other.settle(key(1), algorithm(3), algorithm(1)), algorithm(2));
  EXPECT_EQ(one.settle(key(1), algorithm(3), algorithm(1)), algorithm(2));
}

TEST_F(AlgorithmCaches, AFileOfNoUseIsIgnoredAndWrittenAnew) {
  make_folders(file_.parent_path());
  for (const std::string& content : {std::string("{\"format\": "), text_of({{key(1), algorithm(9)}}, "another card")}) {
    write_file_atomically(file_, content);
    AlgorithmCache cache = open();
    EXPECT_EQ(cache.find(key(1)), std::nullopt);
    EXPECT_EQ(cache.settle(key(1), algorithm(1)), algorithm(1));
    EXPECT_EQ(open().find(key(1)), algorithm(1));
  }
}

TEST_F(AlgorithmCaches, AFileThatIsLostIsWrittenWithAllThatIsKnown) {
  AlgorithmCache cache = open();
  cache.settle(key(1), algorithm(1));
  std::filesystem::remove(file_);
  cache.settle(key(2), algorithm(2));
  EXPECT_EQ(on_disk().size(), 2U);
}

TEST_F(AlgorithmCaches, WhereNothingCanBeWrittenOneWarningTellsAndTheProcessAgreesAllTheSame) {
  write_file_atomically(folder_ / "file", "");
  for (const std::filesystem::path& place : {folder_ / "file" / "algorithms.json", std::filesystem::path()}) {
    AlgorithmCache cache(place, kMachine);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(cache.settle(key(1), algorithm(1)), algorithm(1));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--gemm-timing off"));
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(cache.settle(key(1), algorithm(2)), algorithm(1));
    EXPECT_EQ(cache.settle(key(2), algorithm(2)), algorithm(2));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
  }
}

// Each proposes its own choice for the same products, and one for a product of its own.
Algorithms settle_all(AlgorithmCache& cache, int shared, int rank) {
  Algorithms settled;
  for (int i = 0; i < shared; ++i) settled[key(i)] = cache.settle(key(i), algorithm(1000 * (rank + 1) + i));
  cache.settle(key(1000 + rank), algorithm(rank));
  return settled;
}

// On as many threads, which begin together.
std::vector<Algorithms> settle_on_threads(AlgorithmCache& cache, int shared, int threads) {
  std::vector<Algorithms> settled(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  std::vector<std::jthread> running;
  for (int rank = 0; rank < threads; ++rank) {
    running.emplace_back([&, rank] {
      start.arrive_and_wait();
      settled[static_cast<std::size_t>(rank)] = settle_all(cache, shared, rank);
    });
  }
  running.clear();
  return settled;
}

TEST_F(AlgorithmCaches, ThreadsOfOneProcessAgree) {
  AlgorithmCache cache = open();
  const std::vector<Algorithms> settled = settle_on_threads(cache, 20, 6);
  for (const Algorithms& of_rank : settled) EXPECT_EQ(of_rank, settled.front());
  EXPECT_EQ(on_disk().size(), 26U);
}

TEST_F(AlgorithmCaches, ThreadsOfOneProcessAgreeWithoutAFileToo) {
  ::testing::internal::CaptureStderr();
  for (int round = 0; round < 20; ++round) {
    AlgorithmCache cache("", kMachine);
    const std::vector<Algorithms> settled = settle_on_threads(cache, 300, 4);
    for (const Algorithms& of_rank : settled) EXPECT_EQ(of_rank, settled.front());
  }
  ::testing::internal::GetCapturedStderr();
}

TEST_F(AlgorithmCaches, ProcessesAgreeAndLoseNothing) {
  constexpr int kProcesses = 5, kShared = 40;
  const auto result = [&](int rank) { return folder_ / ("result-" + std::to_string(rank)); };
  std::array<int, 2> start{};  // a pipe that closes when all are there
  ASSERT_EQ(::pipe(start.data()), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kProcesses; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    ::close(start[1]);
    AlgorithmCache cache = open();
    char ignored = 0;
    if (::read(start[0], &ignored, 1) != 0) ::_exit(1);
    write_file_atomically(result(rank), text_of(settle_all(cache, kShared, rank), kMachine));
    ::_exit(0);
  }
  ::close(start[1]);
  ::close(start[0]);
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (int rank = 0; rank < kProcesses; ++rank) EXPECT_EQ(read_file(result(rank)), read_file(result(0)));
  EXPECT_EQ(on_disk().size(), static_cast<std::size_t>(kShared + kProcesses));
}

TEST_F(AlgorithmCaches, AreOneForAMachineInAProcess) {
  setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  const std::string machine = "a card that only this test has";
  const auto cache = algorithm_cache_of(machine);
  EXPECT_EQ(algorithm_cache_of(machine), cache);
  EXPECT_NE(algorithm_cache_of(machine + ", driver 2"), cache);
  cache->settle(key(1), algorithm(1));
  unsetenv("XDG_CACHE_HOME");
  const std::filesystem::path file = folder_ / ("teratron/algorithms/" + checksum_of(machine) + ".json");
  EXPECT_EQ(AlgorithmCache(file, machine).find(key(1)), algorithm(1));
}

}  // namespace
}  // namespace teratron::testing
