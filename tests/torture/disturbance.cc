#include "torture/disturbance.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace teratron::torture {
namespace {

template <class T>
T one_of(RandomSequence& random, const std::vector<T>& choices) {
  return choices[random.below(choices.size())];
}

int error_of(Call call, RandomSequence& random) {
  switch (call) {
    case Call::kWrite: return one_of<int>(random, {EIO, ENOSPC, EDQUOT});
    case Call::kOpen: return one_of<int>(random, {EACCES, ENOSPC, EMFILE});
    case Call::kResize: return one_of<int>(random, {EIO, ENOSPC, EDQUOT});
    default: return one_of<int>(random, {EIO, ENOSPC});
  }
}

}  // namespace

std::string text_of(const Disturbance& one) {
  constexpr std::array kActions = {"nothing",        "kill before", "kill in the midst of", "kill after", "error of",
                                   "full disk from", "half of",     "interruption of"};
  std::string text = one.killed_after ? fmt::format("kill after {} us", one.killed_after->count())
                                      : std::string(kActions[static_cast<std::size_t>(one.action)]);
  if (one.action != Action::kNothing)
    text += fmt::format(" {} {}", kCallNames[static_cast<std::size_t>(one.call)], one.number);
  if (one.error != 0) text += fmt::format(" ({})", std::strerror(one.error));
  if (one.power_failure)
    text += *one.power_failure == Names::kInOrder ? ", power failure (ordered names)" : ", power failure";
  return text;
}

Disturbance draw(const Extent& extent, RandomSequence& random) {
  Disturbance one;
  std::vector<Call> calls;
  for (std::size_t call = 0; call < kCallNames.size(); ++call) {
    if (extent.calls[call] > 0) calls.push_back(static_cast<Call>(call));
  }
  const auto choose = [&](Action action, Call call) {
    one.action = action;
    one.call = call;
    one.number = 1 + random.below(extent.calls[static_cast<std::size_t>(call)]);
  };
  const auto kill_at_a_call = [&] {
    choose(one_of<Action>(random, {Action::kKillBefore, Action::kKillHalf, Action::kKillAfter}), one_of(random, calls));
  };
  const auto kill_at_a_time = [&] {
    one.killed_after = std::chrono::microseconds(random.below(static_cast<std::uint64_t>(extent.time.count())));
  };
  const std::uint64_t kind = random.below(100);
  if (kind < 25) {
    kill_at_a_call();
  } else if (kind < 60) {
    one.power_failure = one_of<Names>(random, {Names::kAnyOrder, Names::kInOrder});
    const std::uint64_t when = random.below(8);  // also when the program has ended
    if (when < 5) kill_at_a_call();
    if (when == 5) kill_at_a_time();
  } else if (kind < 70) {
    kill_at_a_time();
  } else if (kind < 82) {
    choose(Action::kFail, one_of(random, calls));
    one.error = error_of(one.call, random);
  } else if (kind < 90) {
    choose(Action::kFillDisk, one_of<Call>(random, {Call::kOpen, Call::kWrite}));
    one.error = one_of<int>(random, {ENOSPC, EDQUOT});
  } else {
    choose(one_of<Action>(random, {Action::kShort, Action::kInterrupt}), Call::kWrite);
  }
  return one;
}

}  // namespace teratron::torture
