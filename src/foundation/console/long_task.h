// Progress of tasks for people: nothing for a second, then the share that is done and the time that is left. On a
// terminal it is one live line, elsewhere a line now and then.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "console/live_line.h"

namespace teratron {

class LongTask {
 public:
  using Share = std::function<double()>;  // done part of the task, 0 to 1

  struct Options {
    std::FILE* file = stderr;
    int columns = terminal_columns(stderr);  // 0: lines now and then
    double patience = 1;                     // seconds before the first text
    double between = 10;                     // least seconds between lines; at least a tenth of the time so far, too
  };

  // `doing`: "reading 'x'". A thread of the task calls `share` until the end. Without `share` only the time so far is
  // shown.
  explicit LongTask(std::string doing, Share share = {}) : LongTask(std::move(doing), std::move(share), Options()) {}
  LongTask(std::string doing, Share share, const Options& options);
  LongTask(const LongTask&) = delete;
  LongTask& operator=(const LongTask&) = delete;
  ~LongTask();  // clears the terminal's line

  // Ends this task and begins another.
  void next(std::string doing, Share share = {});

 private:
  void watch();

  const Options options_;
  LiveLine line_;
  std::mutex mutex_;  // of all members below
  std::condition_variable ends_;
  bool ended_ = false;
  std::string doing_;
  Share share_;
  double began_, shown_at_;  // shown_at_: time of the last line; before began_: none yet
  std::thread watcher_;
};

// Text of a task: "doing: 43 %, about 12 s left", or "doing: 5.0 s so far" while nothing is done.
std::string progress_text(const std::string& doing, double share, double seconds);

// Progress of a task that computes its share itself, on standard error: it calls the returned function with the share,
// 0 to 1, on any thread. The progress ends with the last copy of the function. Without `is_shown`, as on ranks that do
// not report, there is none.
std::function<void(double share)> show_share(std::string doing, bool is_shown = true);

// Progress of a task of known steps, on standard error. The task calls the returned function before its first step,
// with 0 done, and after each. `seconds_of_step`: expected time of a step, until one is done; 0: unknown.
std::function<void(int done, int steps)> show_steps(std::string doing, double seconds_of_step = 0);

}  // namespace teratron
