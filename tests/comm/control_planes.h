// Processes of a job as threads of a test, each with a control plane of its own.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/control/control_plane.h"
#include "comm/process/launched_job.h"

namespace teratron::testing {

using Process = std::function<void()>;

inline Membership member_at(int port, int rank, int size) {
  return {.rank = rank,
          .size = size,
          .host = "host" + std::to_string(rank),
          .point = {.hosts = {"127.0.0.1"},
                    .ports = {static_cast<std::uint16_t>(port)},
                    .secret = "test " + std::to_string(port),
                    .name = "127.0.0.1:" + std::to_string(port)}};
}

inline ControlSettings settings_for(std::chrono::milliseconds longest_meeting) {
  return {.longest_meeting = longest_meeting,
          .longest_hello = std::chrono::hours(1),  // who waits for strangers to be dropped does not meet in time
          .notice_interval = std::chrono::milliseconds(200),
          .end_process = [](const std::string& message) { throw InternalError("ended with: " + message); }};
}

// Runs each process in a thread; what it throws, as "user: ..", "environment: .." or "bug: ..", in their order.
inline std::vector<std::string> run_processes(const std::vector<std::function<void()>>& processes) {
  std::vector<std::string> errors(processes.size());
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < processes.size(); ++n) {
    threads.emplace_back([&, n] {
      try {
        processes[n]();
      } catch (const UserError& error) {
        errors[n] = std::string("user: ") + error.what();
      } catch (const EnvironmentError& error) {
        errors[n] = std::string("environment: ") + error.what();
      } catch (const std::exception& error) {
        errors[n] = std::string("bug: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// A process that meets the others, calls `body` and ends with them.
inline void run_member(const Membership& own, const std::function<void(ControlPlane&)>& body,
                       std::chrono::milliseconds longest_meeting = std::chrono::seconds(20)) {
  ControlPlane control(own, settings_for(longest_meeting));
  control.meet();
  body(control);
  control.finish();
}

inline std::vector<std::string> run_job(int size, const std::function<void(ControlPlane&, int rank)>& body) {
  const int port = free_port();
  std::vector<std::function<void()>> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(
        [=] { run_member(member_at(port, rank, size), [&](ControlPlane& control) { body(control, rank); }); });
  }
  return run_processes(members);
}

inline Process late(std::chrono::milliseconds delay, const Membership& own) {
  return [=] {
    std::this_thread::sleep_for(delay);
    run_member(own, [](ControlPlane&) {});
  };
}

inline Process in_time(const Membership& own) { return late(std::chrono::milliseconds(0), own); }

// A process that only meets, and gives up after `longest`.
inline Process meets(const Membership& own, std::chrono::milliseconds longest) {
  return [=] { ControlPlane(own, settings_for(longest)).meet(); };
}

inline Socket call(int port, const std::string& host = "127.0.0.1") {
  while (true) {
    const auto address = resolve(host, static_cast<std::uint16_t>(port)).at(0);
    if (Socket socket = connect_to(address, std::chrono::milliseconds(1000))) return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

inline std::optional<Frame> answer_on(FrameConnection& connection) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::seconds(2); connection.is_open() && Clock::now() < end;) {
    wait_for(connection.socket(), POLLIN, std::chrono::milliseconds(10));
    if (auto frame = connection.receive()) return frame;
  }
  return std::nullopt;
}

// Says hello as a process would, and has no control thread.
inline FrameConnection mute_member(const Membership& own) {
  FrameConnection connection(call(own.point.ports.front()));
  connection.send(Hello::frame(own));
  EXPECT_EQ(answer_on(connection).value_or(Frame{}).at(0), "welcome");
  return connection;
}

}  // namespace teratron::testing
