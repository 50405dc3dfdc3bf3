#include "ops/algorithms/algorithm_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/cache_folder.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "teratron-algorithms-1", kChecksum = "xxh3_64 ";

// What stands before the next `end`, which is taken too; nothing where there is none.
std::optional<std::string_view> take(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

std::optional<AlgorithmBytes> bytes_from_hex(std::string_view hex) {
  AlgorithmBytes bytes;
  if (hex.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* const digits = hex.data() + 2 * i;
    if (const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
        error != std::errc() || end != digits + 2) {
      return std::nullopt;
    }
    bytes[i] = static_cast<std::byte>(value);
  }
  return bytes;
}

// "key <tab> microseconds <tab> bytes"
std::optional<std::pair<std::string, Algorithm>> entry_from_line(std::string_view line) {
  const std::optional<std::string_view> key = take(line, '\t'), time = take(line, '\t');
  if (!key || !time) return std::nullopt;
  const std::optional<AlgorithmBytes> bytes = bytes_from_hex(line);
  double microseconds = 0;
  const auto [end, error] = std::from_chars(time->data(), time->data() + time->size(), microseconds);
  if (!bytes || error != std::errc() || end != time->data() + time->size()) return std::nullopt;
  return std::pair(std::string(*key), Algorithm{*bytes, microseconds});
}

// Of a file that may be missing, damaged or foreign: then there are none.
Algorithms algorithms_in(const fs::path& file, std::string_view machine) {
  std::error_code ignored;
  if (file.empty() || !fs::exists(file, ignored)) return {};
  try {
    return algorithms_from_text(read_file(file), machine).value_or(Algorithms{});
  } catch (const UserError&) {  // not readable
    return {};
  }
}

// Held by one process at a time; the system lets go of it when its process ends. EnvironmentError where that takes
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
  std::string text = fmt::format("{}\n{}\n", kFormat, machine);
  for (const auto& [key, algorithm] : algorithms) {
    text += fmt::format("{}\t{}\t", key, algorithm.microseconds);
    for (const std::byte byte : algorithm.bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    text += '\n';
  }
  return text + fmt::format("{}{}\n", kChecksum, checksum_of(text));
}

std::optional<Algorithms> algorithms_from_text(std::string_view text, std::string_view machine) {
  const std::size_t last = text.rfind(kChecksum);
  if (last == std::string_view::npos) return std::nullopt;
  std::string_view content = text.substr(0, last);
  if (text.substr(last) != fmt::format("{}{}\n", kChecksum, checksum_of(content))) return std::nullopt;
  if (take(content, '\n') != kFormat || take(content, '\n') != machine) return std::nullopt;
  Algorithms algorithms;
  while (!content.empty()) {
    const std::optional<std::string_view> line = take(content, '\n');
    auto entry = line ? entry_from_line(*line) : std::nullopt;
    if (!entry) return std::nullopt;
    algorithms.insert(std::move(*entry));
  }
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

// Others may have written since the file was read, and what they wrote stays.
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
  } catch (const EnvironmentError& error) {
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
    const fs::path file = folder.empty() ? folder : folder / "algorithms" / (checksum_of(machine) + ".txt");
    cache = std::make_shared<AlgorithmCache>(file, machine);
  }
  return cache;
}

}  // namespace teratron
