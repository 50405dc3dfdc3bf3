#include "torture/torment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "base/files/file.h"
#include "base/lines.h"
#include "comm/process/launched_job.h"

namespace teratron::torture {
namespace {

namespace fs = std::filesystem;
using testing::lines_of;
using testing::Outcome;
using testing::with;

// While it lives, no call is made: the shim holds the log's lock from a call until it is logged. A program that is
// killed between the two has made a call of which Disk does not know.
class BetweenCalls {
 public:
  explicit BetweenCalls(const fs::path& log) : descriptor_(::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::flock(descriptor_, LOCK_EX), 0);
  }
  ~BetweenCalls() { ::close(descriptor_); }
  BetweenCalls(const BetweenCalls&) = delete;
  BetweenCalls& operator=(const BetweenCalls&) = delete;

 private:
  const int descriptor_;
};

// First differences of what is from what must be; of files that must not be there only where it must be `alone`.
std::string differences(const Tree& is, const Tree& must_be, bool alone) {
  std::string text;
  for (const auto& [path, content] : must_be) {
    const auto found = is.find(path);
    if (found == is.end()) {
      text += path + " is missing\n";
    } else if (found->second != content) {
      text += path + " differs\n";
    }
  }
  for (const auto& [path, content] : is) {
    // A killed run may not have come to delete the checkpoint that its last one replaces.
    const bool may_be = path.find("/iter_") != path.npos;
    if (alone && !may_be && !must_be.contains(path)) text += path + " is one too many\n";
  }
  return text;
}

// Lines about what came before, what was saved, and errors.
std::string news_in(const std::string& errors) {
  const std::regex news("error|warning|saved |goes on|resum|starts over|set aside|dropped");
  std::string text;
  for (const std::string& line : lines_of(errors)) {
    if (std::regex_search(line, news)) text += line + "\n";
  }
  return text;
}

// The iteration that a run reported last as saved; 0 where it reported none.
std::int64_t reported_in(const std::string& errors) {
  std::int64_t last = 0;
  const std::regex saved("saved .*iter_([0-9]+)");
  for (const std::string& line : lines_of(errors)) {
    if (std::smatch match; std::regex_search(line, match, saved)) last = std::stoll(match[1]);
  }
  return last;
}

}  // namespace

Torment::Torment(const Workplace& place, const Scenario& scenario, fs::path log)
    : place_(place), scenario_(scenario), log_(std::move(log)) {}

Reference Torment::refer() {
  begin();
  history_ = scenario_.name + "\n";
  Reference reference{.before = results()};
  Disk disk(place_.results());
  const auto began = std::chrono::steady_clock::now();
  const Outcome outcome = run({});
  const auto time = std::chrono::steady_clock::now() - began;
  if (outcome.exit_code != 0) throw std::runtime_error(scenario_.name + ": " + outcome.errors);
  reference.extent.time = std::chrono::duration_cast<std::chrono::microseconds>(time);
  reference.results = results();
  reference.losses = losses();
  RandomSequence random({.seed = 1});
  const std::vector<LoggedCall> calls = read_log(log_);
  const std::size_t draws = 1 + 1000 / calls.size();
  for (const LoggedCall& call : calls) {
    disk.apply(call);
    if (!call.record.is_folder) ++reference.extent.calls[static_cast<std::size_t>(call.record.call)];
    if (call.path.empty()) continue;  // no name has changed
    for (std::size_t draw = 0; draw < 2 * draws; ++draw) {
      const Names names = draw % 2 == 0 ? Names::kAnyOrder : Names::kInOrder;
      const Tree state = results_in(disk.after_power_failure(random, names));
      expect_of_one_run(state, reference);
      expect_whole_checkpoints(state, reference);
    }
  }
  return reference;
}

void Torment::disturb(const Reference& reference, RandomSequence& random) {
  begin();
  history_ = scenario_.name + "\n";
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
    const Disturbance one = draw(reference.extent, random);
    history_ += "== " + text_of(one) + "\n";
    if (disturb_once(one, reference, random) || ::testing::Test::HasFailure()) return;
  }
  history_ += "== undisturbed\n";
  const Outcome outcome = run({});
  history_ += news_in(outcome.errors);
  if (was_done_already(outcome, reference)) return;
  EXPECT_EQ(outcome.exit_code, 0) << history_;
  expect_results(reference, /*alone=*/true);
}

void Torment::begin() const {
  write_tree(place_.results(), {});
  if (!scenario_.before.empty()) testing::succeed(scenario_.before);
}

Outcome Torment::run(const Disturbance& disturbance) const {
  fs::remove(log_);
  Words words;
  if (scenario_.processes > 1) {
    words = {TERATRON_MPIRUN, "--oversubscribe", "-n", std::to_string(scenario_.processes)};
  }
  words = with(words, {"env", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0",
                       fmt::format("LD_PRELOAD={}", TERATRON_TORTURE_SHIM),
                       fmt::format("{}={}", kFolderVariable, place_.results().string()),
                       fmt::format("{}={}", kLogVariable, log_.string()),
                       fmt::format("{}={} {} {} {}", kPlanVariable, static_cast<int>(disturbance.action),
                                   static_cast<int>(disturbance.call), disturbance.number, disturbance.error),
                       TERATRON_BINARY});
  const bool goes_on = saved_iteration() > 0 && !scenario_.goes_on.empty();
  testing::ChildProgram program(with(words, goes_on ? scenario_.goes_on : scenario_.command),
                                testing::mpirun_environment());
  if (disturbance.killed_after) {
    std::this_thread::sleep_for(*disturbance.killed_after);
    // The first rank of mpirun, where it runs: ranks without mpirun would go on for a while.
    const pid_t killed = scenario_.processes > 1 ? testing::process_of_mpirun(program.pid(), 0) : program.pid();
    const BetweenCalls between(log_);
    if (killed != 0) ::kill(killed, SIGKILL);
  }
  return program.wait(std::chrono::seconds(120));
}

// Returns whether the command has done its work in spite of it.
bool Torment::disturb_once(const Disturbance& disturbance, const Reference& reference, RandomSequence& random) {
  const std::int64_t saved_before = saved_iteration();
  std::optional<Disk> disk;
  if (disturbance.power_failure) disk.emplace(place_.results());
  const Outcome outcome = run(disturbance);
  history_ += fmt::format("{}exit code {}\n", news_in(outcome.errors), outcome.exit_code);
  if (was_done_already(outcome, reference)) return true;
  if (disk) {
    if (fs::exists(log_)) disk->replay(log_);
    EXPECT_EQ(differences(read_tree(place_.results()), disk->seen(), true), "") << "the shim has missed a call\n"
                                                                                << history_;
    write_tree(place_.results(), disk->after_power_failure(random, *disturbance.power_failure));
  }
  EXPECT_GE(saved_iteration(), std::max(saved_before, reported_in(outcome.errors)))
      << "a checkpoint that was reported as saved is lost\n"
      << history_;
  expect_whole_checkpoints(results(), reference);
  if (outcome.exit_code == 0) {
    expect_results(reference, /*alone=*/false);
    return true;
  }
  expect_of_one_run(results(), reference);
  if (disturbance.kills()) {
    EXPECT_TRUE(outcome.exit_code == -1 || scenario_.processes > 1) << history_;
  } else {
    EXPECT_FALSE(disturbance.harms_nothing()) << history_;
    expect_clear_error(outcome);
  }
  return false;
}

// Commands refuse to write over results that are whole: the one before was killed when its work was done.
bool Torment::was_done_already(const Outcome& outcome, const Reference& reference) const {
  const std::regex refuses("nothing is overwritten|holds (a checkpoint|checkpoints) already");
  if (outcome.exit_code != 2 || !std::regex_search(outcome.errors, refuses)) return false;
  expect_results(reference, /*alone=*/false);
  return true;
}

void Torment::expect_clear_error(const Outcome& outcome) const {
  const auto is_error = [](const std::string& line) { return line.find("error: ") != line.npos; };
  EXPECT_EQ(outcome.exit_code, 3) << history_;
  EXPECT_GE(std::ranges::count_if(lines_of(outcome.errors), is_error), 1) << history_;
  EXPECT_LE(std::ranges::count_if(lines_of(outcome.errors), is_error), scenario_.processes) << history_;
}

// That no results of the command before stand beside some of this one. Checkpoints have names of their own.
void Torment::expect_of_one_run(const Tree& is, const Reference& reference) const {
  if (!scenario_.run.empty()) return;
  const auto are_of = [&](const Tree& whole) {
    return std::ranges::all_of(is, [&](const auto& entry) {
      const auto found = whole.find(entry.first);
      return found != whole.end() ? found->second == entry.second : !reference.results.contains(entry.first);
    });
  };
  EXPECT_TRUE(are_of(reference.before) || are_of(reference.results))
      << "what stands is not of one run:\n"
      << differences(is, reference.results, false) << history_;
}

// That each folder with a checkpoint's name has all files of one, and the reference's bytes where that has it; and that
// the current one is there.
void Torment::expect_whole_checkpoints(const Tree& is, const Reference& reference) const {
  const auto is_checkpoint = [](const auto& entry) {
    return entry.second == "/" && fs::path(entry.first).filename().string().starts_with("iter_");
  };
  const auto whole = std::ranges::find_if(reference.results, is_checkpoint);
  for (const auto& entry : is) {
    const fs::path path = entry.first;
    if (path.filename() == "latest_checkpointed_iteration.txt") {
      const std::string named = fmt::format("iter_{:07}", std::stoll(entry.second.substr(1)));
      EXPECT_TRUE(is.contains((path.parent_path() / named).string())) << named << " is gone\n" << history_;
    }
    if (!is_checkpoint(entry)) continue;
    for (const auto& [one, content] : reference.results) {
      if (!one.starts_with(whole->first + "/")) continue;
      const std::string file = entry.first + one.substr(whole->first.size());
      const auto must_be = reference.results.find(file);
      EXPECT_TRUE(is.contains(file) && (must_be == reference.results.end() || must_be->second == is.at(file)))
          << file << " is not whole\n"
          << history_;
    }
  }
}

void Torment::expect_results(const Reference& reference, bool alone) const {
  EXPECT_EQ(differences(results(), reference.results, alone), "") << history_;
  // Lines may be lost with a killed process; none is wrong, or there twice.
  const std::vector<std::string> is = losses();
  EXPECT_TRUE(std::ranges::includes(reference.losses, is) && std::ranges::adjacent_find(is) == is.end())
      << ::testing::PrintToString(is) << history_;
}

Tree Torment::results() const { return results_in(read_tree(place_.results())); }

std::vector<std::string> Torment::losses() const {
  std::vector<std::string> losses;
  const fs::path file = place_.results() / scenario_.run / "metrics.jsonl";
  if (scenario_.run.empty() || !fs::exists(file)) return losses;
  for (const std::string& line : lines_of(read_file(file))) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("loss"))
      losses.push_back(json["iteration"].dump() + ": " + json["loss"].dump());
  }
  return losses;
}

std::int64_t Torment::saved_iteration() const {
  const fs::path tracker = place_.results() / scenario_.run / "latest_checkpointed_iteration.txt";
  return !scenario_.run.empty() && fs::exists(tracker) ? std::stoll(read_file(tracker)) : 0;
}

}  // namespace teratron::torture
