#include "base/host/threads.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/host/monotonic_clock.h"
#include "base/host/progress_count.h"
#include "base/host/resources.h"

namespace teratron {
namespace {

using tbb::global_control;

// Lets oneTBB make more threads than it counts processors.
void allow_threads(int threads) {
  static std::mutex mutex;
  static std::unique_ptr<global_control> control;
  const std::lock_guard lock(mutex);
  const auto wanted = static_cast<std::size_t>(threads);
  if (wanted <= global_control::active_value(global_control::max_allowed_parallelism)) return;
  control.reset();  // the smaller of two limits would apply
  control = std::make_unique<global_control>(global_control::max_allowed_parallelism, wanted);
}

// State of a thread that starts loops. Its arena is made by the first loop.
struct Team {
  int threads = usual_threads();
  std::optional<tbb::task_arena> arena;
  ContentionGuard guard;
};
thread_local Team team;
thread_local bool is_in_loop = false;

// Marks its thread as one that runs a loop's task.
class InLoop {
 public:
  InLoop() : before_(is_in_loop) { is_in_loop = true; }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;
  ~InLoop() { is_in_loop = before_; }

 private:
  bool before_;
};

}  // namespace

int thread_count() { return team.threads; }

void set_thread_count(int threads) {
  if (threads == team.threads) return;
  team.threads = std::max(threads, 1);
  team.arena.reset();
}

bool is_lack_of_threads(const std::exception& error) {
  if (const auto* const of_system = dynamic_cast<const std::system_error*>(&error)) {
    return of_system->code() == std::errc::resource_unavailable_try_again;
  }
  return std::string_view(error.what()).starts_with("pthread_create has failed");  // oneTBB's, a std::runtime_error
}

void run_in_parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& task) {
  note_progress();
  const double began = team.threads > 1 && !is_in_loop ? monotonic_seconds() : 0;
  if (tasks <= 1 || team.threads == 1 || is_in_loop || !team.guard.has_helpers(began)) {
    for (std::int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  if (!team.arena) {
    allow_threads(team.threads);
    team.arena.emplace(team.threads);
  }
  const auto self = std::this_thread::get_id();
  std::int64_t own = 0;
  double own_end = began;
  team.arena->execute([&] {
    tbb::parallel_for(
        std::int64_t{0}, tasks, std::int64_t{1},
        [&](std::int64_t i) {
          {
            const InLoop mark;
            task(i);
          }
          if (std::this_thread::get_id() != self) return;
          ++own;
          own_end = monotonic_seconds();
        },
        tbb::simple_partitioner());
  });
  team.guard.note(began, own_end, monotonic_seconds(), own, tasks);
}

}  // namespace teratron
