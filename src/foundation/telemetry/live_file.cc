#include "telemetry/live_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_string.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

fs::path partial_live_file(const fs::path& folder) { return folder / (std::string(kLiveFile) + ".partial"); }

ordered_json json_of_rank(const LiveRank& rank) {
  return {{"rank", rank.rank},   {"host", rank.host},   {"place", rank.place},
          {"waits", rank.waits}, {"still", rank.still}, {"memory_bytes", rank.memory}};
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

LiveRank rank_in(const JsonFields& fields) {
  return {.rank = fields.integer("rank", 0, kMost),
          .host = fields.string("host"),
          .place = fields.string("place"),
          .waits = fields.boolean("waits"),
          .still = fields.number("still"),
          .memory = fields.integer("memory_bytes", 0, kMost)};
}

}  // namespace

std::string LiveRun::to_json() const {
  ordered_json all = ordered_json::array();
  for (const LiveRank& rank : ranks) all.push_back(json_of_rank(rank));
  const ordered_json json = {{"host", host},
                             {"process", process},
                             {"written_at", written_at},
                             {"iteration", iteration},
                             {"iterations", iterations},
                             {"loss", loss ? ordered_json(*loss) : ordered_json()},
                             {"tokens_per_second", tokens_per_second},
                             {"seconds_left", seconds_left},
                             {"ranks", all}};
  return json_text(json);
}

LiveRun parse_live_run(std::string_view text, const fs::path& name) {
  const nlohmann::json json = parse_json_object(text, name);
  const JsonFields fields(json, name);
  LiveRun run{.host = fields.string("host"),
              .process = fields.integer("process", 1, std::numeric_limits<std::int32_t>::max()),
              .written_at = fields.number("written_at"),
              .iteration = fields.integer("iteration", 0, kMost),
              .iterations = fields.integer("iterations", 0, kMost),
              .tokens_per_second = fields.number("tokens_per_second"),
              .seconds_left = fields.number("seconds_left")};
  if (fields.has("loss")) run.loss = fields.number("loss");
  if (!fields["ranks"].is_array()) fields.throw_not("ranks", "a list of ranks");
  for (const nlohmann::json& rank : fields["ranks"]) {
    if (!rank.is_object()) fields.throw_not("ranks", "a list of ranks");
    run.ranks.push_back(rank_in(JsonFields(rank, name)));
  }
  return run;
}

// Without fsync: after a crash of the host nobody asks for the state of a run that is gone.
bool write_live_file(const fs::path& folder, const LiveRun& run) {
  const fs::path partial = partial_live_file(folder);
  const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return false;
  const std::string text = run.to_json() + "\n";
  const bool is_whole = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(descriptor);
  if (is_whole && std::rename(partial.c_str(), (folder / kLiveFile).c_str()) == 0) return true;
  ::unlink(partial.c_str());
  return false;
}

void remove_live_file(const fs::path& folder) {
  for (const fs::path& file : {folder / kLiveFile, partial_live_file(folder)}) ::unlink(file.c_str());
}

}  // namespace teratron
