// Stages with as many send buffers as send_slots() all come to the end of their lists, played message by message as the
// executor does it.
#include "pipeline/send_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "pipeline/checker.h"
#include "pipeline/dependencies.h"
#include "pipeline/random_schedule.h"

namespace teratron::testing {
namespace {

using namespace pipeline;

// Messages of one direction between two stages. The n-th send is done when the n-th receive has been posted, and the
// other way about.
struct SlotChannel {
  std::size_t sent = 0, posted = 0;
};
struct Message {
  SlotChannel* channel = nullptr;
  std::size_t number = 0;
  bool is_sent() const { return channel == nullptr || channel->sent > number; }
  bool is_taken() const { return channel == nullptr || channel->posted > number; }
};

class Machine {
 public:
  Machine(const Schedule& schedule, int slots) : schedule_(schedule) {
    for (int stage = 0; stage < schedule.stages; ++stage) {
      stages_.push_back({.outputs = std::vector<Message>(static_cast<std::size_t>(slots)),
                         .gradients = std::vector<Message>(static_cast<std::size_t>(gradient_slots(slots)))});
    }
  }

  bool ends() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        while (advance(stage)) moved = true;
      }
    }
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      if (stages_[static_cast<std::size_t>(stage)].at < list(stage).size()) return false;
    }
    return true;
  }

 private:
  enum class Next { kPostFirst, kPostNext, kReceive, kAct };
  struct Stage {
    std::size_t at = 0;  // the action under way
    Next next = Next::kPostFirst;
    Message own, following;  // what the action works on, and the one after it
    std::size_t own_mpi_rank = 0, following_place = 0;
    std::vector<Message> outputs, gradients;  // what was sent last from each place
    std::size_t outputs_used = 0, gradients_used = 0;
  };

  const std::vector<Action>& list(int stage) const { return schedule_.actions[static_cast<std::size_t>(stage)]; }
  SlotChannel& channel(int from, int to, const Action& action) {
    return channels_[{from, to, action.pass == Pass::kForward}];
  }

  // Posts the receive for an action; false where its place is not free yet.
  bool post(int stage, std::size_t at, Message& message, std::size_t& place) {
    Stage& s = stages_[static_cast<std::size_t>(stage)];
    message = {};
    if (at >= list(stage).size()) return true;
    const Action& action = list(stage)[at];
    if (makes_input_gradient(action.pass)) {
      place = s.gradients_used % s.gradients.size();
      if (!s.gradients[place].is_taken()) return false;
      ++s.gradients_used;
      s.gradients[place] = {};
    }
    if (const std::optional<int> from = receives_from(schedule_, stage, action)) {
      SlotChannel& c = channel(*from, stage, action);
      message = {&c, c.posted++};
    }
    return true;
  }

  bool act(int stage) {
    Stage& s = stages_[static_cast<std::size_t>(stage)];
    const Action& action = list(stage)[s.at];
    const std::optional<int> to = sends_to(schedule_, stage, action);
    if (to && action.pass == Pass::kForward) {
      Message& place = s.outputs[s.outputs_used % s.outputs.size()];
      if (!place.is_taken()) return false;
      ++s.outputs_used;
      place = {&channel(stage, *to, action), channel(stage, *to, action).sent++};
    } else if (to) {
      s.gradients[s.own_mpi_rank] = {&channel(stage, *to, action), channel(stage, *to, action).sent++};
    }
    ++s.at;
    return true;
  }

  bool advance(int stage) {
    Stage& s = stages_[static_cast<std::size_t>(stage)];
    if (s.at >= list(stage).size()) return false;
    switch (s.next) {
      case Next::kPostFirst:
        if (!post(stage, 0, s.following, s.following_place)) return false;
        s.next = Next::kPostNext;
        return true;
      case Next::kPostNext: {
        const Message own = s.following;
        const std::size_t own_mpi_rank = s.following_place;
        if (!post(stage, s.at + 1, s.following, s.following_place)) {
          s.following = own;
          s.following_place = own_mpi_rank;
          return false;
        }
        s.own = own;
        s.own_mpi_rank = own_mpi_rank;
        s.next = Next::kReceive;
        return true;
      }
      case Next::kReceive:
        if (!s.own.is_sent()) return false;
        s.next = Next::kAct;
        return true;
      case Next::kAct:
        if (!act(stage)) return false;
        s.next = Next::kPostNext;
        return true;
    }
    return false;
  }

  const Schedule& schedule_;
  std::vector<Stage> stages_;
  std::map<std::tuple<int, int, bool>, SlotChannel> channels_;
};

TEST(SendSlots, AreEnoughForEverySchedule) {
  RandomSequence random(RandomStream{.seed = 11});
  int more_than_two = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Schedule schedule = any_schedule(random);
    const int slots = send_slots(schedule);
    ASSERT_TRUE(Machine(schedule, slots).ends()) << "trial " << trial << " with " << slots;
    more_than_two += slots > 2 ? 1 : 0;
  }
  EXPECT_GT(more_than_two, 10);  // so that the test has something to find
}

TEST(SendSlots, AreTwoForTheNamedSchedules) {
  RandomSequence random(RandomStream{.seed = 12});
  for (int trial = 0; trial < 300; ++trial) {
    for (const ScheduleKind kind : kAllKinds) {
      const ScheduleTraits& traits = traits_of(kind);
      if (traits.most_cells > 1 && traits.placement == Placement::kInTurns) continue;
      EXPECT_EQ(send_slots(make_schedule(kind, random_size(random, kind))), 2) << name_of(kind);
    }
  }
}

TEST(SendSlots, ASinglePlaceCanStopAllStages) {
  RandomSequence random(RandomStream{.seed = 13});
  int stopped = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Schedule schedule = any_schedule(random);
    if (send_slots(schedule) > 2 && !Machine(schedule, 1).ends()) ++stopped;
  }
  EXPECT_GT(stopped, 0);
}

TEST(FirstMicroBatches, AreFitToRunAndAsTheGeneratorsMakeThem) {
  RandomSequence random(RandomStream{.seed = 14});
  for (int trial = 0; trial < 300; ++trial) {
    const Schedule any = any_schedule(random);
    EXPECT_TRUE(schedule_faults(first_micro_batches(any, between(random, 1, any.micro_batches))).empty());
    const ScheduleKind kind = kAllKinds[random.below(kAllKinds.size())];
    ScheduleSize size = random_size(random, kind);
    const Schedule schedule = make_schedule(kind, size);
    const int unit = traits_of(kind).fills_groups ? size.stages : 1;
    const int fewer = between(random, 1, size.micro_batches / unit) * unit;
    size.micro_batches = fewer;
    EXPECT_EQ(first_micro_batches(schedule, fewer), make_schedule(kind, size)) << name_of(kind);
  }
}

}  // namespace
}  // namespace teratron::testing
