#include "comm/core_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace teratron {

std::vector<int> own_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int core_share(const std::vector<std::vector<int>>& cores_of_process, std::size_t which) {
  std::map<int, std::vector<std::size_t>> users;
  for (std::size_t process = 0; process < cores_of_process.size(); ++process) {
    for (const int core : cores_of_process[process]) users[core].push_back(process);
  }
  std::vector<std::vector<std::size_t>> candidates;  // those with the fewest choices first
  for (auto& [_, processes] : users) candidates.push_back(std::move(processes));
  std::ranges::stable_sort(candidates, {}, &std::vector<std::size_t>::size);
  std::vector<int> share(cores_of_process.size());
  for (const std::vector<std::size_t>& processes : candidates) {
    ++share[*std::ranges::min_element(processes, {}, [&](std::size_t process) { return share[process]; })];
  }
  return std::max(1, share[which]);
}

std::string to_text(const std::vector<int>& cores) { return fmt::format("{}", fmt::join(cores, " ")); }

std::vector<int> cores_from_text(std::string_view text) {
  std::vector<int> cores;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int core = 0; at < end; ++at) {  // over the space
    const auto [after, error] = std::from_chars(at, end, core);
    if (error != std::errc()) break;
    cores.push_back(core);
    at = after;
  }
  return cores;
}

}  // namespace teratron
