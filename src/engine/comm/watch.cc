#include "comm/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

namespace teratron {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostLines = 64;
constexpr milliseconds kShortestInterval{100}, kLongestInterval{1000};
constexpr milliseconds kLongestPause{3000};  // between two looks, unless this process was stopped

double in_seconds_of_watch(Watch::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

milliseconds WatchSettings::interval() const {
  if (longest.count() == 0) return kLongestInterval;
  return std::clamp(longest / 8, kShortestInterval, kLongestInterval);
}

Watch::Watch(WatchSettings settings, int ranks)
    : settings_(std::move(settings)),
      reports_(static_cast<std::size_t>(ranks)),
      progress_(reports_.size()),
      moved_at_(reports_.size()) {
  for (int rank = 0; rank < ranks; ++rank) report_of(rank).rank = rank;
}

void Watch::begin(Clock::time_point now) {
  std::ranges::fill(moved_at_, now);
  last_look_ = next_report_ = now;
  has_begun_ = true;
}

void Watch::see(int rank, const Sight& sight, Clock::time_point now) {
  RankReport& report = report_of(rank);
  const auto index = static_cast<std::size_t>(rank);
  report.place = sight.place;
  report.memory = sight.memory;
  const bool has_turned = std::exchange(report.waits, sight.waits) != sight.waits;  // to work, or to wait
  if (std::exchange(progress_[index], sight.progress) != sight.progress || has_turned) moved_at_[index] = now;
}

void Watch::see_end(int rank, Clock::time_point now) {
  if (!std::exchange(report_of(rank).has_ended, true)) moved_at_[static_cast<std::size_t>(rank)] = now;
}

void Watch::count_times(Clock::time_point now) {
  for (std::size_t rank = 0; rank < reports_.size(); ++rank) {
    reports_[rank].still = in_seconds_of_watch(now - moved_at_[rank]);
  }
}

Watch::Stand Watch::longest_stand() const {
  Stand work, all_wait{.seconds = std::numeric_limits<double>::max()};
  for (const RankReport& report : reports_) {
    all_wait.seconds = std::min(all_wait.seconds, report.waits || report.has_ended ? report.still : 0);
    if (report.has_ended) continue;
    if (!report.waits && report.still > work.seconds) work = {.rank = report.rank, .seconds = report.still};
  }
  const bool all_have_ended = std::ranges::all_of(reports_, &RankReport::has_ended);
  if (all_have_ended) all_wait.seconds = 0;
  return settings_.watches_work && work.rank ? work : all_wait;
}

std::string Watch::reason_of(const Stand& stand) const {
  if (stand.rank) return fmt::format("it has made no progress for {:.0f} seconds", stand.seconds);
  return fmt::format("nothing has moved for {:.0f} seconds, and all ranks wait for one another ({})", stand.seconds,
                     who_waits());
}

std::string Watch::who_waits() const {
  constexpr std::size_t kMostShown = 16;
  std::string text;
  for (std::size_t rank = 0; rank < std::min(kMostShown, reports_.size()); ++rank) {
    const RankReport& report = reports_[rank];
    text += fmt::format("{}rank {} on {} in: {}", rank == 0 ? "" : ", ", rank, report.host,
                        report.place.empty() ? "nothing it reported" : report.place);
  }
  return text + (reports_.size() > kMostShown ? ", .." : "");
}

std::optional<Watch::Verdict> Watch::look(Clock::time_point now) {
  if (!has_begun_) return std::nullopt;
  const auto longest_pause =
      settings_.longest.count() == 0 ? kLongestPause : std::min(kLongestPause, settings_.longest / 2);
  if (now - std::exchange(last_look_, now) > longest_pause) std::ranges::fill(moved_at_, now);
  count_times(now);
  if (settings_.report && now >= next_report_) {
    next_report_ = now + seconds(1);
    settings_.report(reports_);
  }
  if (settings_.longest.count() == 0) return std::nullopt;
  const double longest = in_seconds_of_watch(settings_.longest);
  const Stand stand = longest_stand();
  if (stand.seconds >= longest) return Verdict{.rank = stand.rank, .reason = reason_of(stand)};
  const bool warns = stand.seconds >= longest / 2;
  if (std::exchange(has_warned_, warns) || !warns) return std::nullopt;
  const std::string who = stand.rank ? fmt::format("rank {} on {}, in: {}: ", *stand.rank, report_of(*stand.rank).host,
                                                   report_of(*stand.rank).place)
                                     : "";
  std::fputs(fmt::format("{}{}; the job ends after {:g} seconds of that\n", who, reason_of(stand), longest).c_str(),
             stderr);
  return std::nullopt;
}

std::string Watch::text(Clock::time_point now) {
  count_times(now);
  std::string lines;
  for (const RankReport& report : std::span(reports_).first(std::min(kMostLines, reports_.size()))) {
    lines += fmt::format("rank {} on {}: {}; its last progress was {:.1f} seconds ago\n", report.rank, report.host,
                         report.has_ended       ? "it has ended"
                         : report.place.empty() ? "nothing it reported"
                                                : report.place,
                         report.still);
  }
  if (reports_.size() > kMostLines) lines += fmt::format("and {} ranks more\n", reports_.size() - kMostLines);
  return lines;
}

}  // namespace teratron
