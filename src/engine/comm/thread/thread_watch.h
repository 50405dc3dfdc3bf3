// ThreadWatch: a thread that looks at ranks which are threads of this process, and ends the process where they stand.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "comm/thread/thread_world.h"
#include "comm/watch.h"

namespace teratron {

class ThreadWatch {
 public:
  // `end_process` gets the message and does not return. Does nothing where the settings ask for nothing.
  ThreadWatch(ThreadWorld& world, const WatchSettings& settings,
              std::function<void(const std::string& message)> end_process);

 private:
  void run(const std::stop_token& stop);
  void look(Watch::Clock::time_point now);

  ThreadWorld& world_;
  Watch watch_;
  const std::function<void(const std::string&)> end_process_;
  std::jthread thread_;
};

}  // namespace teratron
