// Processes of an address launch as threads of a test, each with a job of its own.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/process/launched_job.h"
#include "comm/tcp/tcp_job.h"

namespace teratron::testing {

inline AddressLaunch launch_at(int port, int rank, int world_size) {
  return {.rank = rank,
          .world_size = world_size,
          .address = "127.0.0.1",
          .port = static_cast<std::uint16_t>(port),
          .ports = {static_cast<std::uint16_t>(port)},
          .job = "test " + std::to_string(port),
          .launcher = "a test"};
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

// Meets the others, connects with them and calls `body` with the group of all. Nobody is watched.
inline void run_rank(const AddressLaunch& launch, const std::function<void(Transport&)>& body) {
  const std::string host = "host" + std::to_string(launch.rank);
  TcpJob job(launch, "host", std::chrono::seconds(20));
  if (job.meet(host).at(static_cast<std::size_t>(launch.rank)) != host) throw InternalError("a contact is another's");
  Liveness liveness(launch.rank, launch.world_size, host, [](const std::string&) { std::abort(); });
  const auto world = job.connect(liveness);
  body(*world);
}

inline std::vector<std::string> run_world(int size, const std::function<void(Transport&)>& body) {
  const int port = free_port();
  std::vector<std::function<void()>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back([=] { run_rank(launch_at(port, rank, size), body); });
  return run_processes(ranks);
}

}  // namespace teratron::testing
