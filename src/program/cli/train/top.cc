// teratron top: shows a run that lives: how far it is, and where each of its ranks is.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/save_lock.h"
#include "base/host/host_name.h"
#include "base/host/monotonic_clock.h"
#include "checkpoint/native/folders.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/live_line.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "runtime/end_signals.h"
#include "telemetry/live_file.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr double kFresh = 5;  // seconds; a run writes once a second
constexpr auto kRefresh = std::chrono::milliseconds(1000);

struct TopOptions {
  fs::path folder, json;
};

FieldList fields_of(TopOptions& o) {
  FieldList list;
  list.add_positional(&o.folder, "DIR", "folder of --save of the run");
  add_json_field(list, o.json);
  return list;
}

// State of the run that wrote the file.
enum class Life { kLives, kSilent, kGone };

struct Shown {
  LiveRun run;
  Life life = Life::kLives;
  double age = 0;  // seconds since it was written
};

[[noreturn]] void throw_no_run(const fs::path& folder) {
  if (std::error_code error; !fs::is_directory(folder, error)) {
    throw_user_error("there is no folder '{}'; name the folder of --save of a run", folder.string());
  }
  if (fs::exists(folder / SaveLock::kFile)) {
    throw_user_error(
        "a run holds '{}' and has not come to its updates, or died before; its first lines say how far it "
        "is",
        folder.string());
  }
  const std::vector<std::int64_t> checkpoints = iterations_in(folder);
  throw_user_error("no run lives in '{}'; {}", folder.string(),
                   checkpoints.empty() ? "it holds no checkpoint either"
                                       : fmt::format("its last checkpoint is of iteration {}", checkpoints.back()));
}

// Nothing: there is no file.
std::optional<LiveRun> read_live_run(const fs::path& folder) {
  const fs::path file = folder / kLiveFile;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  try {
    return parse_live_run(read_file(file), file);
  } catch (const UserError&) {
    if (!fs::exists(file, error)) return std::nullopt;  // the run ended meanwhile
    throw;
  }
}

bool is_gone(const LiveRun& run) {
  return run.host == host_name() && ::kill(static_cast<pid_t>(run.process), 0) != 0 && errno == ESRCH;
}

// A process of another container may have the host's name, too. A run that goes on writing lives.
Shown look_at(const fs::path& folder) {
  std::optional<LiveRun> run = read_live_run(folder);
  if (!run) throw_no_run(folder);
  const double age = wall_seconds() - run->written_at;
  if (!is_gone(*run)) return {.run = *run, .life = age < kFresh ? Life::kLives : Life::kSilent, .age = age};
  if (age < kFresh) {
    std::this_thread::sleep_for(kRefresh + kRefresh / 2);
    const std::optional<LiveRun> next = read_live_run(folder);
    if (!next) throw_no_run(folder);  // it ended as it should
    if (next->written_at > run->written_at) return {.run = *next, .life = Life::kLives};
  }
  return {.run = *run, .life = Life::kGone, .age = wall_seconds() - run->written_at};
}

std::string name_of(Life life) {
  switch (life) {
    case Life::kLives: return "lives";
    case Life::kSilent: return "silent";
    case Life::kGone: return "gone";
  }
  return "?";
}

// A file may say anything.
std::string duration_of(double seconds) { return readable_duration(std::clamp(seconds, 0.0, 1e9)); }

std::string text_of_life(const Shown& shown) {
  const std::string ago = duration_of(shown.age);
  const std::string process = fmt::format("process {} on {}", shown.run.process, shown.run.host);
  switch (shown.life) {
    case Life::kLives: return process;
    case Life::kSilent:
      return fmt::format(
          "{} has written nothing for {}: it is stopped, its host or disk is out of reach, or the clocks "
          "of the hosts differ",
          process, ago);
    case Life::kGone: return fmt::format("{} was killed, or ended with an error; its last state, {} ago", process, ago);
  }
  return "";
}

std::string text_of(const Shown& shown) {
  const LiveRun& run = shown.run;
  std::string text = text_of_life(shown) + "\n";
  text += fmt::format("iteration {} of {}", readable_integer(run.iteration), readable_integer(run.iterations));
  if (run.loss) {
    text += fmt::format(", loss {:.4f}, {} tokens/s, {} left", *run.loss, readable_count(run.tokens_per_second),
                        duration_of(run.seconds_left));
  }
  text += "\n";
  TextTable table({Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"rank", "host", "memory", "still", "place"});
  for (const LiveRank& rank : run.ranks) {
    table.row({std::to_string(rank.rank), rank.host, readable_bytes(static_cast<std::uint64_t>(rank.memory)),
               fmt::format("{:.1f} s", rank.still), rank.place});
  }
  return printable(text + (run.ranks.empty() ? "" : table.text(0)));
}

nlohmann::ordered_json json_of(const Shown& shown) {
  nlohmann::ordered_json json = {{"state", name_of(shown.life)}, {"seconds_since_written", shown.age}};
  json.update(nlohmann::ordered_json::parse(shown.run.to_json()));
  return json;
}

// Lines that fit the terminal above the keys' and the cursor's; "..": there are others.
std::string fitted(const std::string& text, const winsize& size) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const std::size_t rows = size.ws_row > 2 ? size.ws_row - std::size_t{2} : lines;
  const std::size_t columns = size.ws_col > 0 ? size.ws_col : std::string::npos;
  std::string shown;
  std::size_t begin = 0;
  for (std::size_t line = 1; begin < text.size(); ++line) {
    if (line == rows && lines > rows) return shown + "..\n";
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    shown += text.substr(begin, std::min(end - begin, columns)) + "\n";
    begin = end + 1;
  }
  return shown;
}

// Keys come one by one and are not shown, while one exists.
class SingleKeys {
 public:
  SingleKeys() : is_terminal_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!is_terminal_) return;
    termios single = before_;
    single.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &single);
  }
  SingleKeys(const SingleKeys&) = delete;
  SingleKeys& operator=(const SingleKeys&) = delete;
  ~SingleKeys() {
    if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  // Waits for a key, but not long. True: it was q.
  bool quits_within(std::chrono::milliseconds time) const {
    pollfd look{.fd = is_terminal_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&look, 1, static_cast<int>(time.count())) <= 0) return false;
    char key = 0;
    return ::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q';
  }

 private:
  termios before_{};
  const bool is_terminal_;
};

void follow(const fs::path& folder) {
  EndSignals signals(/*says=*/false);
  signals.listen();
  const SingleKeys keys;
  constexpr std::string_view kFromTop = "\x1b[H\x1b[J";
  while (EndSignals::came() == 0) {
    if (!read_live_run(folder)) return print_result("the run has ended\n");
    const Shown shown = look_at(folder);
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    print_result(fmt::format("{}{}q ends\n", kFromTop, fitted(text_of(shown), size)));
    if (shown.life == Life::kGone || keys.quits_within(kRefresh)) return;
  }
  if (EndSignals::came() != SIGINT) throw EndedBySignal(EndSignals::came());
}

void run(const TopOptions& options) {
  const Shown shown = look_at(options.folder);
  if (options.json.empty() && terminal_columns(stdout) > 0) return follow(options.folder);
  report(options.json, text_of(shown), json_of(shown));
}

}  // namespace

Command top_command() { return make_command<TopOptions>("top", "shows where the ranks of a run are", run); }

}  // namespace teratron
