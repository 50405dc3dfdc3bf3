// Start of a command's ranks, and facts about them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/output_lock.h"
#include "comm/launch.h"
#include "comm/mesh.h"
#include "settings/backend_settings.h"
#include "settings/layout_settings.h"

namespace teratron {

// Context of one rank of a command.
struct Rank {
  Communicator& world;
  std::shared_ptr<Mesh> mesh;
  const LaunchEnvironment& environment;

  bool is_first() const { return world.rank() == 0; }  // the rank that reports
  int ranks_in_this_process() const { return environment.kind == RankKind::kThreads ? world.size() : 1; }
  // Peak bytes of every rank, in order: of its device, or its equal share of the process's memory. Every rank calls it.
  std::vector<std::int64_t> peak_memory(const Allocator& memory) const;
};

// Warning that tensor-parallel ranks, which sum activations in every layer, lie on several hosts; empty: they do not.
// `hosts`: of every rank, in order.
std::string warning_of_split_hosts(const MeshShape& shape, std::span<const std::string> hosts);

// Launcher of a command's ranks. A command makes it first, and calls run() once.
class RankLauncher {
 public:
  // `watch`: as detect_launch().
  RankLauncher(const LayoutSettings& layout, BackendKind backend, const WatchSettings& watch = {});

  static constexpr int kMostThreads = 1024;  // ranks as threads of one process

  // Calls `body` on each rank. `options`: this process's, by to_toml(). UserError: another process has
  // other options (lists the differences), or one process has more than kMostThreads ranks.
  void run(const std::string& options, const std::function<void(const Rank&)>& body) const;

  // UserError: `input` is standard input ("-") and there are several processes, of which a launcher gives it to one.
  // `name`: the input's flag ("--data").
  void require_file(std::string_view name, const std::filesystem::path& input) const;

  bool is_first_process() const { return environment_.process == 0; }
  // Lock of an output, which the first process writes. The others have none, nor has an empty name.
  std::optional<OutputLock> lock(const std::filesystem::path& out) const;

  // "4 ranks (tensor 2 x pipeline 1 x data 2) as threads of one process on HOST", for people; empty for one rank.
  std::string description() const;

 private:
  MeshShape shape_;
  LaunchEnvironment environment_;
};

}  // namespace teratron
