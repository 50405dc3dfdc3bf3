#include "ops/algorithms/algorithm_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/cache_folder.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/json_string.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

using Words = std::array<std::uint64_t, 8>;  // the library's opaque structure, as numbers that fit into JSON

// Reads a cache file. One that is missing, damaged or of another version gives none.
Algorithms algorithms_in(const fs::path& file, std::string_view machine) {
  std::error_code ignored;
  if (file.empty() || !fs::exists(file, ignored)) return {};
  try {
    return algorithms_from_text(read_file(file), machine).value_or(Algorithms{});
  } catch (const UserError&) {  // not readable
    return {};
  }
}

// A lock that one process holds at a time; the system releases it when the process ends. EnvironmentError: waiting took
// longer than writing such a file can, or the file system has no locks.
class FileLock {
 public:
  explicit FileLock(const fs::path& file) : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw_environment_error("cannot open '{}': {}", file.string(), std::strerror(errno));
    constexpr auto kPause = std::chrono::milliseconds(5);
    constexpr int kTries = 2000;
    for (int tries = 0; ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++tries) {
      const int error = errno;
      if ((error == EWOULDBLOCK || error == EINTR) && tries < kTries) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      ::close(descriptor_);
      throw_environment_error("cannot lock '{}': {}", file.string(), std::strerror(error));
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

std::string text_of(const Algorithms& algorithms, std::string_view machine) {
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [key, algorithm] : algorithms) {
    list[key] = {{"microseconds", algorithm.microseconds}, {"words", std::bit_cast<Words>(algorithm.bytes)}};
  }
  const nlohmann::json json = {
      {"machine", machine}, {"algorithms", list}, {"xxh3_64", checksum_of(json_text(list, 1))}};
  return json_text(json, 1);
}

std::optional<Algorithms> algorithms_from_text(std::string_view text, std::string_view machine) {
  Algorithms algorithms;
  try {
    const nlohmann::json file = nlohmann::json::parse(text);
    for (const auto& [key, entry] : file.at("algorithms").items()) {
      const nlohmann::json& words = entry.at("words");
      // get() would convert other numbers, which is undefined for those that are too large.
      const auto is_word = [](const nlohmann::json& word) { return word.is_number_unsigned(); };
      if (!std::all_of(words.begin(), words.end(), is_word)) return std::nullopt;
      algorithms[key] = {.bytes = std::bit_cast<AlgorithmBytes>(words.get<Words>()),
                         .microseconds = entry.at("microseconds").get<double>()};
    }
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  // The machine, the checksum and all else are right exactly if writing the algorithms again gives the same text.
  if (text_of(algorithms, machine) != text) return std::nullopt;
  return algorithms;
}

AlgorithmCache::AlgorithmCache(fs::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)), known_(algorithms_in(file_, machine_)) {}

std::optional<Algorithm> AlgorithmCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(key);
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

Algorithm AlgorithmCache::settle(const std::string& key, const Algorithm& own,
                                 const std::optional<Algorithm>& unusable) {
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(key);
  if (at != known_.end() && !(unusable && at->second.bytes == unusable->bytes)) return at->second;  // by another thread
  return known_.insert_or_assign(key, settle_on_disk(key, own, unusable)).first->second;
}

// Others may have written since the file was read; their choices stay.
Algorithm AlgorithmCache::settle_on_disk(const std::string& key, const Algorithm& own,
                                         const std::optional<Algorithm>& unusable) {
  if (warned_) return own;  // what failed once may fail slowly
  try {
    if (file_.empty()) throw_environment_error("neither HOME nor XDG_CACHE_HOME is set");
    make_folders(file_.parent_path());
    const FileLock lock(file_.string() + ".lock");
    Algorithms stored = algorithms_in(file_, machine_);
    const auto at = stored.find(key);
    if (at != stored.end() && !(unusable && at->second.bytes == unusable->bytes)) return at->second;
    stored.insert_or_assign(key, own);
    stored.insert(known_.begin(), known_.end());
    write_file_atomically(file_, text_of(stored, machine_));
  } catch (const std::runtime_error& error) {
    warn(error.what());
  }
  return own;
}

void AlgorithmCache::warn(std::string_view reason) {
  warned_ = true;
  const std::string text = fmt::format(
      "warning: which algorithms the matrix products take cannot be kept: {}; another run may choose others and differ "
      "in the last bits (set XDG_CACHE_HOME to a folder that can be written, or give --gemm-timing off)\n",
      reason);
  std::fputs(text.c_str(), stderr);
}

std::shared_ptr<AlgorithmCache> algorithm_cache_of(const std::string& machine) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<AlgorithmCache>> caches;
  const std::lock_guard lock(mutex);
  std::shared_ptr<AlgorithmCache>& cache = caches[machine];
  if (!cache) {
    const fs::path folder = user_cache_folder();
    const fs::path file = folder.empty() ? folder : folder / "algorithms" / (checksum_of(machine) + ".json");
    cache = std::make_shared<AlgorithmCache>(file, machine);
  }
  return cache;
}

}  // namespace teratron
