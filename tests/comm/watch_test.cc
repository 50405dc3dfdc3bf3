// The watch of the ranks of a job, on a clock of the test's own: which job stands, and which only takes its time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/philox.h"
#include "comm/watch.h"

namespace teratron::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Verdict = std::optional<Watch::Verdict>;

// Ranks that do as the test says at every tenth of a second, for 30 seconds of the watch's clock.
struct Play {
  int ranks = 3;
  seconds longest{10};
  bool watches_work = true;
  // State of a rank at a time in seconds.
  std::function<bool(int rank, double at)> waits = [](int, double) { return false; };
  std::function<bool(int rank, double at)> moves = [](int, double) { return true; };
  std::function<bool(double at)> is_stopped = [](double) { return false; };  // the process that looks

  struct End {
    Verdict verdict;
    double at = 0;
  };
  End run() const {
    Watch watch({.longest = longest, .watches_work = watches_work}, ranks);
    Watch::Clock::time_point now{};
    watch.begin(now);
    std::vector<std::uint64_t> progress(static_cast<std::size_t>(ranks));
    for (int tick = 1; tick <= 300; ++tick) {
      now += milliseconds(100);
      const double at = tick / 10.0;
      if (is_stopped(at)) continue;
      for (int rank = 0; rank < ranks; ++rank) {
        std::uint64_t& count = progress[static_cast<std::size_t>(rank)];
        if (moves(rank, at)) ++count;
        watch.see(rank, {.place = "place " + std::to_string(rank), .waits = waits(rank, at), .progress = count}, now);
      }
      if (Verdict verdict = watch.look(now)) return {verdict, at};
    }
    return {};
  }
};

TEST(Watch, NamesTheRankThatWorksAndDoesNotMoveAfterTheTime) {
  const Play::End end = Play{.waits = [](int rank, double) { return rank != 1; },
                             .moves = [](int rank, double at) { return at < 5 || (rank == 0 && at < 7); }}
                            .run();
  ASSERT_TRUE(end.verdict);
  EXPECT_EQ(end.verdict->rank, 1);
  EXPECT_EQ(end.verdict->reason, "it has made no progress for 10 seconds");
  EXPECT_NEAR(end.at, 14.9, 0.2);
}

TEST(Watch, EndsAJobWhoseRanksAllWaitWhenTheLastThatMovedHasStoodForTheTime) {
  for (const bool watches_work : {false, true}) {
    const Play::End end = Play{.watches_work = watches_work,
                               .waits = [](int, double) { return true; },
                               .moves = [](int rank, double at) { return at < 3 * rank; }}
                              .run();
    ASSERT_TRUE(end.verdict);
    EXPECT_EQ(end.verdict->rank, std::nullopt);
    EXPECT_THAT(end.verdict->reason, AllOf(HasSubstr("nothing has moved for 10 seconds"), HasSubstr("in: place 2")));
    EXPECT_NEAR(end.at, 15.9, 0.2);
  }
}

TEST(Watch, RanksThatWaitForOneThatWorksMayWaitForEver) {
  const auto works = [](int rank, double at) { return rank == (at < 15 ? 0 : 2); };
  EXPECT_FALSE((Play{.waits = [=](int rank, double at) { return !works(rank, at); }, .moves = works}.run().verdict));
}

TEST(Watch, TheTimeOfAJobCountsFromWhereItsLastRankBeganToWait) {
  const Play::End end = Play{.watches_work = false,
                             .waits = [](int rank, double at) { return rank != 0 || at >= 15; },
                             .moves = [](int, double) { return false; }}
                            .run();
  ASSERT_TRUE(end.verdict);
  EXPECT_NEAR(end.at, 25, 0.2);
}

TEST(Watch, WhereWorkIsNotWatchedARankMayWorkForEver) {
  EXPECT_FALSE((Play{.watches_work = false,
                     .waits = [](int rank, double) { return rank != 1; },
                     .moves = [](int, double) { return false; }}
                    .run()
                    .verdict));
}

// SIGSTOP and SIGCONT, a debugger, a clock that jumps: the ranks stood because all of it did.
TEST(Watch, APauseOfTheProcessThatLooksIsNoStandstill) {
  for (const double length : {4.0, 9.0, 20.0}) {
    const auto paused = [=](double at) { return at > 6 && at < 6 + length; };
    EXPECT_FALSE((Play{.moves = [=](int, double at) { return at < 5 || at > 6 + length + 0.5; }, .is_stopped = paused}
                      .run()
                      .verdict))
        << length;
  }
}

TEST(Watch, RanksThatMoveWithinTheTimeAreNeverEnded) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomSequence random(RandomStream{.seed = seed});
    std::vector<double> moved(4), next(4);
    Play play{.ranks = 4};
    play.moves = [&](int rank, double at) {
      const auto i = static_cast<std::size_t>(rank);
      if (at < next[i]) return false;
      next[i] = at + static_cast<double>(random.below(90)) / 10;
      return true;
    };
    play.waits = [&](int, double) { return random.below(2) == 0; };
    EXPECT_FALSE(play.run().verdict) << seed;
  }
}

TEST(Watch, ReportsOnceASecondAndWarnsOnceAtHalfTheTime) {
  ::testing::internal::CaptureStderr();
  int reports = 0;
  Watch watch({.longest = seconds(10),
               .watches_work = true,
               .report =
                   [&](std::span<const RankReport> ranks) {
                     ++reports;
                     EXPECT_EQ(ranks.size(), 2U);
                   }},
              2);
  Watch::Clock::time_point now{};
  watch.begin(now);
  for (int tick = 0; tick < 90; ++tick) EXPECT_FALSE(watch.look(now += milliseconds(100)));
  EXPECT_NEAR(reports, 9, 1);
  const std::string errors = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(errors, AllOf(HasSubstr("it has made no progress for 5 seconds"),
                            HasSubstr("the job ends after 10 seconds of that\n")));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);
}

TEST(Place, IsTextOfTheActivityAndTheOutermostCall) {
  Place place;
  const Place::Use use(place);
  EXPECT_EQ(place.look().text(), "");
  note_activity({.name = "forward", .iteration = 12, .micro_batch = 3, .slice = 1, .chunk = 0});
  EXPECT_EQ(place.look().text(), "forward of micro-batch 3, slice 1, chunk 0 of iteration 12");
  note_activity({.name = "update", .iteration = 12});
  const std::uint64_t before = place.look().progress;
  {
    const Place::Waits outer({.name = "all-reduce of", .first = 1, .stride = 2, .size = 3});
    const Place::Waits inner({.name = "receive from", .first = 7, .size = 1});
    EXPECT_EQ(place.look().text(), "update of iteration 12, in all-reduce of ranks 1, 3, 5");
    EXPECT_TRUE(place.look().waits);
  }
  EXPECT_FALSE(place.look().waits);
  EXPECT_GT(place.look().progress, before);
  {
    const Place::Waits message({.name = "receive from", .first = 7, .size = 1});
    EXPECT_THAT(place.look().text(), HasSubstr("in receive from rank 7"));
  }
  EXPECT_EQ((AwaitedCall{.name = "all-gather of", .first = 4, .stride = 0, .size = 3}).text(),
            "all-gather of 3 ranks from 4 on");
  EXPECT_EQ((AwaitedCall{.name = "all-gather of", .size = 100}).text(),
            "all-gather of ranks 0, 1, 2, 3, 4, 5, 6, 7 .. 99");
}

}  // namespace
}  // namespace teratron::testing
