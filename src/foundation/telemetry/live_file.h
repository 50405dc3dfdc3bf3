// live.json: state of a running run, rewritten about once a second in the folder that it saves to. `teratron top` shows
// it. A run that ends in good order deletes it; one that dies leaves its last state.
//
// A file and not a socket: it is read from other hosts and other accounts as far as the folder is, a reader can neither
// delay nor harm the run, and it outlives a run that was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

inline constexpr std::string_view kLiveFile = "live.json";

struct LiveRank {
  std::int64_t rank = 0;
  std::string host, place;  // place: for people, "forward of micro-batch 1 of iteration 12"
  bool waits = false;       // for other ranks
  double still = 0;         // seconds since its last progress
  std::int64_t memory = 0;  // bytes of the host's memory
};

struct LiveRun {
  std::string host;
  std::int64_t process = 0;  // process of the first rank, on `host`
  double written_at = 0;     // in seconds since 1970
  std::int64_t iteration = 0, iterations = 0;
  std::optional<double> loss;  // of that iteration; nothing: none was made yet
  double tokens_per_second = 0, seconds_left = 0;
  std::vector<LiveRank> ranks;

  std::string to_json() const;
};

// UserError: `text` is no such state. `name`: the file's, for the message.
LiveRun parse_live_run(std::string_view text, const std::filesystem::path& name);

// Replaces the file in one step. False: it could not, as on a full disk; the next second may.
bool write_live_file(const std::filesystem::path& folder, const LiveRun& run);
void remove_live_file(const std::filesystem::path& folder);

}  // namespace teratron
