#include "corpus/stream/journal.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "base/json_string.h"
#include "base/version.h"
#include "corpus/stream/stream_json.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kJournalFormat = "teratron corpus journal 6";

fs::path journal_of(const fs::path& out) { return out.string() + ".journal"; }
fs::path state_of(const fs::path& out) { return out.string() + ".journal-state"; }
fs::path spool_of(const fs::path& out) { return out.string() + ".spool.partial"; }

// Changed contents have another size or time, unless a user forges them.
Json json_of_file(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {{"path", file.string()}};
  return {{"path", file.string()},
          {"bytes", status.st_size},
          {"seconds", status.st_mtim.tv_sec},
          {"nanoseconds", status.st_mtim.tv_nsec}};
}

// For a folder, such as a tokenizer's: the files in it.
Json json_of_files(const std::vector<fs::path>& named) {
  Json files = Json::array();
  for (const fs::path& one : named) {
    std::error_code none;
    if (!fs::is_directory(one, none)) {
      files.push_back(json_of_file(one));
      continue;
    }
    std::vector<fs::path> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(one, none)) inside.push_back(entry.path());
    std::ranges::sort(inside);
    for (const fs::path& file : inside) files.push_back(json_of_file(file));
  }
  return files;
}

StreamCounts counts_from(const Json& json) {
  StreamCounts counts{.documents = json.at("documents"),
                      .kept = json.at("kept"),
                      .bad = json.at("bad"),
                      .text_bytes = json.at("text_bytes"),
                      .kept_bytes = json.at("kept_bytes"),
                      .first_bad = json.value("first_bad", ""),
                      .stages = {}};
  for (const Json& one : json.at("stages")) {
    counts.stages.push_back({.name = one.at("stage"),
                             .documents_in = one.at("documents"),
                             .documents_out = one.at("kept"),
                             .changed = one.at("changed"),
                             .dropped = one.at("reasons")});
  }
  return counts;
}

Json json_of(const LinePoint& point) { return {{"bytes", point.bytes}, {"tail", point.tail.size()}}; }

LinePoint line_point_from(const Json& json, std::string_view& tails) {
  const auto tail = json.at("tail").get<std::size_t>();
  LinePoint point{.bytes = json.at("bytes"), .tail = std::string(tails.substr(0, tail))};
  check(point.tail.size() == tail, "the journal's tail");
  tails.remove_prefix(tail);
  return point;
}

// The first thing that differs, in the user's words.
std::string difference(const Json& then, const Json& now) {
  for (const auto& [name, value] : now.at("settings").items()) {
    const Json before = then.at("settings").value(name, Json());
    if (before != value) return fmt::format("{} was {}, and is {}", name, before.dump(), value.dump());
  }
  for (const std::string list : {"files", "also_read"}) {
    const Json &old_files = then.at(list), &files = now.at(list);
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (i < old_files.size() && old_files[i] == files[i]) continue;
      return fmt::format("'{}' is another file, or has changed", files[i].at("path").get<std::string>());
    }
  }
  return then == now ? "" : "it is of another command, or of other files";
}

std::string fault_of(const fs::path& partial, std::uint64_t bytes) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(partial, error);
  if (!error && size >= bytes) return "";
  return fmt::format("'{}' is not what it was", partial.string());
}

}  // namespace

Journal::Journal(const StreamOptions& options, const std::vector<std::unique_ptr<Stage>>& stages,
                 const std::vector<fs::path>& files)
    : path_(journal_of(options.out)),
      state_path_(state_of(options.out)),
      spool_path_(spool_of(options.out)),
      out_(options.out),
      dropped_(options.dropped),
      seconds_(options.journal_seconds) {
  Json settings = Json::object();
  for (const auto& [name, value] : options.settings) settings[name] = value;
  settings["version"] = kVersion;
  settings["stages"] = Json::array();
  for (const auto& stage : stages) settings["stages"].push_back(stage->name());
  settings["format"] = static_cast<int>(options.format);
  settings["json-key"] = options.text_key;
  settings["max-bad-share"] = options.max_bad_share;
  settings["dropped"] = options.dropped.string();
  const Json run = {
      {"settings", settings}, {"files", json_of_files(files)}, {"also_read", json_of_files(options.also_read)}};
  run_ = json_text(run);
}

JournalPoint Journal::begin(const std::function<void(std::string_view)>& report) {
  std::string why_not;
  const std::optional<JournalPoint> point = load(why_not);
  written_at_ = monotonic_seconds();
  if (!point) {
    if (!why_not.empty()) report(fmt::format("starts over instead of resuming an earlier run: {}", why_not));
    remove();
    return {};
  }
  documents_ = point->counts.documents;
  report(fmt::format("resumes after document {} ('{}')", documents_, path_.string()));
  return *point;
}

std::optional<JournalPoint> Journal::load(std::string& why_not) const {
  std::error_code none;
  if (!fs::exists(path_, none)) return std::nullopt;
  try {
    const std::string content = read_file(path_);
    const std::size_t end = content.find('\n');
    const Json json = Json::parse(content.substr(0, end));
    if (json.at("format") != kJournalFormat) throw_user_error("another format");
    why_not = difference(json.at("run"), Json::parse(run_));
    if (!why_not.empty()) return std::nullopt;
    std::string_view tails = std::string_view(content).substr(end + 1);
    JournalPoint point{.position = {.file = json.at("file"), .line = json.at("line")},
                       .counts = counts_from(json.at("counts")),
                       .out = line_point_from(json.at("out"), tails),
                       .dropped = line_point_from(json.at("dropped"), tails),
                       .spool = {.bytes = json.at("spool_bytes"), .checksum = json.at("spool_checksum")},
                       .state_bytes = json.at("state_bytes"),
                       .state_checksum = json.at("state_checksum")};
    why_not = fault_of(AtomicFile::partial_of(out_), point.out.bytes);
    const auto look_at = [&](const fs::path& partial, std::uint64_t bytes) {
      if (why_not.empty() && bytes > 0) why_not = fault_of(partial, bytes);
    };
    if (why_not.empty() && !dropped_.empty()) why_not = fault_of(AtomicFile::partial_of(dropped_), point.dropped.bytes);
    look_at(AtomicFile::partial_of(state_path_), point.state_bytes);
    look_at(spool_path_, point.spool.bytes);
    if (!why_not.empty()) return std::nullopt;
    return point;
  } catch (const std::exception&) {
    why_not = fmt::format("'{}' is damaged", path_.string());
    return std::nullopt;
  }
}

void Journal::load_state(const JournalPoint& point,
                         const std::function<void(std::size_t stage, std::string_view delta)>& take) {
  if (point.state_bytes == 0) return;
  state_.emplace(state_path_, point.state_bytes);
  state_->keep_partial(true);
  const MappedFile file(AtomicFile::partial_of(state_path_));
  std::string_view rest = file.text().substr(0, point.state_bytes);
  state_sum_.update(std::as_bytes(std::span(rest)));
  if (point.state_checksum != state_sum_.digest()) {
    throw_user_error("'{}' is damaged; run the same command again, which then starts over",
                     AtomicFile::partial_of(state_path_).string());
  }
  while (!rest.empty()) {
    std::uint64_t header[2];  // as add_state writes it
    std::memcpy(header, rest.data(), sizeof header);
    take(header[0], rest.substr(sizeof header, header[1]));
    rest.remove_prefix(sizeof header + header[1]);
  }
}

void Journal::add_state(std::size_t stage, std::string_view delta) {
  if (delta.empty() || !has_files()) return;
  if (!state_) state_.emplace(state_path_);
  const std::uint64_t header[2] = {stage, delta.size()};
  state_->write_values(std::span<const std::uint64_t>(header));
  state_->write(delta);
  state_sum_.update(std::as_bytes(std::span(header)));
  state_sum_.update(std::as_bytes(std::span(delta)));
}

bool Journal::is_due(const JournalPoint& now) const {
  return has_news(now) && monotonic_seconds() - written_at_ >= seconds_;
}

void Journal::write(JournalPoint point) {
  if (state_) {
    state_->sync();
    state_->keep_partial(true);
    point.state_bytes = state_->bytes_written();
    point.state_checksum = state_sum_.digest();
  }
  const Json json = {{"format", kJournalFormat},         {"file", point.position.file},
                     {"line", point.position.line},      {"counts", json_of(point.counts, {})},
                     {"out", json_of(point.out)},        {"dropped", json_of(point.dropped)},
                     {"spool_bytes", point.spool.bytes}, {"spool_checksum", point.spool.checksum},
                     {"state_bytes", point.state_bytes}, {"state_checksum", point.state_checksum},
                     {"run", Json::parse(run_)}};
  write_file_atomically(path_, json_text(json) + "\n" + point.out.tail + point.dropped.tail);
  written_at_ = monotonic_seconds();
  documents_ = point.counts.documents;
}

void Journal::remove() {
  state_.reset();
  if (has_files()) remove(out_);
}

void Journal::remove(const fs::path& out) {
  std::error_code none;
  fs::remove(journal_of(out), none);
  fs::remove(AtomicFile::partial_of(state_of(out)), none);
  fs::remove(spool_of(out), none);
}

}  // namespace teratron
