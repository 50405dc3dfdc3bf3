#include "pipeline/send_slots.h"

#include <optional>

#include "base/error.h"
#include "pipeline/dependencies.h"

namespace teratron::pipeline {
namespace {

// The action that receives a result, as an index in its stage's list.
struct Receipt {
  int stage = 0;
  std::size_t index = 0;
  bool has_begun(const Progress& progress) const { return progress[static_cast<std::size_t>(stage)] >= index; }
};

Event event_of(const Schedule& schedule, int stage, const Action& action) {
  return {action.pass == Pass::kForward ? Outcome::kOutput : Outcome::kInputGradient, schedule.cell(stage, action),
          action.micro_batch, action.slice};
}

class BoundedPlay {
 public:
  explicit BoundedPlay(const Schedule& schedule) : schedule_(schedule), receipts_(events(schedule)) {
    for (int stage = 0; stage < schedule.stages; ++stage) note_receipts(stage);
    for (int stage = 0; stage < schedule.stages; ++stage) note_sends(stage);
  }

  bool ends_with(int slots) const {
    const auto may_start = [&](int stage, std::size_t index, const Progress& progress) {
      return has_room(stage, index, progress, slots);
    };
    const Progress progress = play(
        schedule_, [](int, std::size_t) {}, may_start);
    for (std::size_t stage = 0; stage < progress.size(); ++stage) {
      if (progress[stage] < schedule_.actions[stage].size()) return false;
    }
    return true;
  }

 private:
  // forwards_before and backwards_before, by index in a stage's list: how many sending forwards, and how many input
  // gradients, come before that action. forwards and backwards, by that count: where the result is received; none for
  // the gradients of the first cell.
  struct Stage {
    std::vector<std::size_t> forwards_before, backwards_before;
    std::vector<Receipt> forwards;
    std::vector<std::optional<Receipt>> backwards;
  };

  const std::vector<Action>& list(int stage) const { return schedule_.actions[static_cast<std::size_t>(stage)]; }

  void note_receipts(int stage) {
    for (std::size_t index = 0; index < list(stage).size(); ++index) {
      const Action& action = list(stage)[index];
      if (!receives_from(schedule_, stage, action)) continue;
      Event event = event_of(schedule_, stage, action);
      event.cell += action.pass == Pass::kForward ? -1 : 1;
      receipts_[number_of(schedule_, event)] = Receipt{stage, index};
    }
  }

  void note_sends(int stage) {
    Stage& s = stages_.emplace_back();
    for (const Action& action : list(stage)) {
      s.forwards_before.push_back(s.forwards.size());
      s.backwards_before.push_back(s.backwards.size());
      const bool sends = sends_to(schedule_, stage, action).has_value();
      const auto receipt = [&] { return receipts_[number_of(schedule_, event_of(schedule_, stage, action))]; };
      if (makes_input_gradient(action.pass)) s.backwards.push_back(sends ? receipt() : std::nullopt);
      if (action.pass == Pass::kForward && sends) s.forwards.push_back(receipt().value());
    }
  }

  bool has_room(int stage, std::size_t index, const Progress& progress, int slots) const {
    const Stage& s = stages_[static_cast<std::size_t>(stage)];
    const auto ahead = static_cast<std::size_t>(slots);
    const std::size_t sent = s.forwards_before[index];
    if (list(stage)[index].pass == Pass::kForward && sent >= ahead && sent < s.forwards.size() &&
        !s.forwards[sent - ahead].has_begun(progress)) {
      return false;
    }
    const std::size_t next = index + 1, gradient_count = static_cast<std::size_t>(gradient_slots(slots));
    if (next >= list(stage).size() || !makes_input_gradient(list(stage)[next].pass)) return true;
    const std::size_t made = s.backwards_before[next];
    if (made < gradient_count) return true;
    const std::optional<Receipt>& before = s.backwards[made - gradient_count];
    return !before || before->has_begun(progress);
  }

  const Schedule& schedule_;
  std::vector<std::optional<Receipt>> receipts_;  // by event
  std::vector<Stage> stages_;
};

}  // namespace

int send_slots(const Schedule& schedule) {
  const BoundedPlay play(schedule);
  const auto most = static_cast<int>(2 * schedule.forwards_per_stage());
  for (int slots = 2; slots <= most; slots *= 2) {
    if (play.ends_with(slots)) return slots;
  }
  check(play.ends_with(most + 2), "a schedule that is fit to run ends with slots for all");
  return most + 2;
}

}  // namespace teratron::pipeline
