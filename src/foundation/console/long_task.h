// What a person sees of a task that takes long: nothing for a second, then what is done, how far it is and how long
// it will still take.
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
  using Share = std::function<double()>;  // what is done of it, 0 to 1

  struct Options {
    std::FILE* file = stderr;
    int columns = terminal_columns(stderr);  // 0: lines now and then
    double patience = 1;                     // seconds before the first word
    double between = 10;                     // seconds between lines, at least; a tenth of the time so far, too
  };

  // `doing`: "reading 'x'". `share` is asked by a thread of this class's own, until the end; without it, only the time
  // so far is told.
  explicit LongTask(std::string doing, Share share = {}) : LongTask(std::move(doing), std::move(share), Options()) {}
  LongTask(std::string doing, Share share, const Options& options);
  LongTask(const LongTask&) = delete;
  LongTask& operator=(const LongTask&) = delete;
  ~LongTask();  // the task is done; nothing is left on a terminal

  // The next task: one that begins now.
  void next(std::string doing, Share share = {});

 private:
  void watch();

  const Options options_;
  LiveLine line_;
  std::mutex mutex_;  // of all that follows
  std::condition_variable ends_;
  bool ended_ = false;
  std::string doing_;
  Share share_;
  double began_, said_;  // said_: when the last line was written; before began_: not yet
  std::thread watcher_;
};

// "doing: 43 %, about 12 s left", or "doing: 5.0 s so far" where nothing is known to be done.
std::string progress_text(const std::string& doing, double share, double seconds);

}  // namespace teratron
