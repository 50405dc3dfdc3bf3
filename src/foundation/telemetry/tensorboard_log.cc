#include "telemetry/tensorboard_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/host_name.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// TensorBoard reads files with this in their names, in the order of names.
constexpr std::string_view kPrefix = "events.out.tfevents.", kSuffix = ".teratron";

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ends, missing;
  for (fs::directory_iterator entry(folder, ends), end; !ends && entry != end; entry.increment(ends)) {
    const bool is_named = entry->path().filename().string().starts_with(kPrefix);
    if (is_named && entry->is_regular_file(missing)) files.push_back(entry->path());
  }
  return files;
}

bool is_ours(const fs::path& file) { return file.string().ends_with(kSuffix); }

constexpr std::int64_t kLastSecond = 9'999'999'999;  // of a name's ten digits

// Second in a file's name; 0: none, or one that no later second of ten digits follows.
std::int64_t second_of(const fs::path& file) {
  const std::string name = file.filename().string();
  std::int64_t second = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), second);
  return second < kLastSecond ? second : 0;
}

// Name of a new file. Its second is later than all others: the order of files of one second is undefined.
fs::path next_file(const fs::path& folder) {
  auto second = static_cast<std::int64_t>(wall_seconds());
  for (const fs::path& file : event_files(folder)) second = std::max(second, second_of(file) + 1);
  return folder / fmt::format("{}{:010}.{}.{}{}", kPrefix, second, host_name(), ::getpid(), kSuffix);
}

// Drops records of a file.
void trim(const fs::path& file, const TensorBoardLog::Keeps& keeps) {
  const std::string content = read_file(file);
  std::string_view rest = content;
  std::string kept;
  while (const std::optional<EventRecord> record = first_record(rest)) {
    if (record->tag.empty() || keeps(record->step, record->tag)) kept += record->bytes;
    rest.remove_prefix(record->bytes.size());
  }
  if (kept.size() < content.size()) write_file_atomically(file, kept);
}

}  // namespace

TensorBoardLog::TensorBoardLog(const fs::path& folder, const Keeps& keeps) {
  make_folders(folder);
  for (const fs::path& file : event_files(folder)) {
    if (is_ours(file)) trim(file, keeps);
  }
  const fs::path file = next_file(folder);
  file_.emplace(file);
  try {
    file_->append(record_of({.wall_time = wall_seconds(), .file_version = "brain.Event:2"}));
  } catch (const EnvironmentError&) {
    std::error_code error;
    fs::remove(file, error);  // the next try begins another file
    throw;
  }
}

void TensorBoardLog::scalars(std::vector<Points> points, double wall_time) {
  std::string records;
  for (Points& at : points) {
    records += record_of({.wall_time = wall_time, .step = at.step, .scalars = std::move(at.values)});
  }
  file_->append(records);
}

void TensorBoardLog::text(std::int64_t step, const std::string& tag, const std::string& text) {
  file_->append(record_of({.wall_time = wall_seconds(), .step = step, .texts = {{tag, text}}}));
}

bool TensorBoardLog::holds_records(const fs::path& folder) { return std::ranges::any_of(event_files(folder), is_ours); }

}  // namespace teratron
