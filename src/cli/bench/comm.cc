// teratron bench comm: how fast all-reduces are, against copying, or MPI's own (under mpirun).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/host/threads.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/show_steps.h"
#include "console/text_table.h"
#include "studies/all_reduce_speed.h"

namespace teratron {
namespace {

struct BenchCommOptions {
  std::int64_t ranks = 0;  // 0: 2 and 4 as threads, all processes under a launcher
  std::int64_t largest = 64;
  std::int64_t threads = 0;
  std::filesystem::path json;

  Faults faults() const;
};

FieldList fields_of(BenchCommOptions& o) {
  FieldList list;
  list.add("ranks", &o.ranks, "N", "ranks; 0: 2 and then 4 threads, or all processes of the launcher").between(0, 256);
  list.add("largest", &o.largest, "MB", "the largest view; the smallest is 1 MB").between(1, 1024);
  list.add("threads", &o.threads, "N", "threads that all ranks share; 0: one a core").between(0, 4096);
  add_json_field(list, o.json);
  return list;
}

Faults BenchCommOptions::faults() const {
  Faults faults;
  faults.add_if(ranks == 1, "{} is 1, and a rank alone reduces nothing; give 2 or more", Flag{"ranks"});
  return faults;
}

struct Row {
  int ranks;
  AllReduceSpeed speed;
};

std::string text_of(Yardstick yardstick, const std::vector<Row>& rows) {
  const char* const name = yardstick == Yardstick::kMpi ? "MPI_Allreduce" : "copy";
  TextTable table({Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"ranks", "MB", "all-reduce GB/s", fmt::format("{} GB/s", name), "ratio"});
  for (const Row& row : rows) {
    table.row({fmt::format("{}", row.ranks), fmt::format("{}", row.speed.bytes >> 20),
               fmt::format("{:.2f}", row.speed.bandwidth() / 1e9),
               fmt::format("{:.2f}", row.speed.yardstick_bandwidth() / 1e9), fmt::format("{:.2f}", row.speed.ratio())});
  }
  const char* const meaning =
      yardstick == Yardstick::kMpi
          ? "GB/s: bytes of the view (f32, in place) over the seconds until the last rank has its sum; ours and "
            "MPI_Allreduce\n(sum) in turns, medians. Ours adds in the ranks' order, so that sums repeat bit for bit.\n"
          : "GB/s: bytes of the view (f32, in place) over the seconds until the last rank has its sum. Copy: every "
            "rank\n"
            "copies a view of that size to another place at the same time, with the same threads; in turns, medians. "
            "R ranks\nmust read R views and write R views in either case.\n";
  return table.text() + meaning;
}

nlohmann::ordered_json json_of(const LaunchEnvironment& environment, const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    list.push_back({{"ranks", row.ranks},
                    {"bytes", row.speed.bytes},
                    {"bytes_per_second", row.speed.bandwidth()},
                    {"yardstick_bytes_per_second", row.speed.yardstick_bandwidth()},
                    {"ratio", row.speed.ratio()}});
  }
  return {{"ranks_are", environment.ranks_are()},
          {"yardstick", environment.has_mpi() ? "MPI_Allreduce" : "copy"},
          {"all_reduce", list}};
}

void run(const BenchCommOptions& options) {
  const LaunchEnvironment environment = detect_launch(TensorMemory::kHost);
  if (options.threads > 0) set_thread_count(static_cast<int>(options.threads));
  std::vector<int> counts = {2, 4};
  if (environment.kind == RankKind::kProcesses) counts = {environment.processes};
  if (options.ranks > 0) counts = {static_cast<int>(options.ranks)};
  std::vector<Row> rows;
  int sizes = 0, done = 0;
  for (std::int64_t megabytes = 1; megabytes <= options.largest; megabytes *= 4) ++sizes;
  const int steps = sizes * static_cast<int>(counts.size());
  const auto show = environment.process == 0 ? show_steps("measuring sums over ranks") : [](int, int) {};
  show(0, steps);
  for (const int ranks : counts) {
    run_ranks(environment, ranks, [&](Communicator& world) {
      for (std::int64_t megabytes = 1; megabytes <= options.largest; megabytes *= 4) {
        const AllReduceSpeed speed = measure_all_reduce(world, yardstick_of(environment), megabytes << 20);
        if (world.rank() != 0) continue;
        rows.push_back({ranks, speed});
        show(++done, steps);
      }
    });
  }
  if (environment.process == 0) {
    report(options.json, text_of(yardstick_of(environment), rows), json_of(environment, rows).dump());
  }
}

}  // namespace

Command bench_comm_command() {
  return make_command<BenchCommOptions>("bench comm", "measures how fast ranks sum what they hold", run);
}

}  // namespace teratron
