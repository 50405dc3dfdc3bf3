// Commands that run on many ranks: starting the ranks, and what they tell of themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/launch.h"
#include "comm/mesh.h"
#include "settings/backend_settings.h"

namespace teratron {

// What a rank's part of a command is given.
struct Rank {
  Communicator& world;
  std::shared_ptr<Mesh> mesh;
  const LaunchEnvironment& environment;

  bool is_first() const { return world.rank() == 0; }  // the one that talks
  int ranks_in_this_process() const { return environment.kind == RankKind::kThreads ? world.size() : 1; }
  // Bytes, of every rank in order: of its device's memory where it has one, else of the process's, which ranks that
  // share it share evenly. Every rank calls it.
  std::vector<std::int64_t> peak_memory(const Allocator& memory) const;
};

// Tensor-parallel ranks sum activations in every layer, so their hosts had better be one; empty where they are.
// `hosts`: of every rank in order.
std::string warning_of_split_hosts(const MeshShape& shape, std::span<const std::string> hosts);

// Made first thing in a command; then run(), once.
class RankLauncher {
 public:
  // `threads`: of all ranks of this process together; 0: one a core. `bind`: as detect_launch has it.
  RankLauncher(std::int64_t threads, BackendKind backend, const std::string& bind = "");

  static constexpr int kMostThreads = 1024;  // ranks as threads of one process

  // Calls `body` on each rank of the layout. `options`, as to_toml gives them, are those this process was started with:
  // UserError with the differences where those of another process are different, and where there are more ranks than
  // kMostThreads of one process.
  void run(const MeshShape& shape, const std::string& options, const std::function<void(const Rank&)>& body) const;

  // UserError where every process of the job would read standard input ("-"), which a launcher gives to one of them.
  // `name`: what the user calls it ("--data").
  void require_file(std::string_view name, const std::filesystem::path& input) const;

  const LaunchEnvironment& environment() const { return environment_; }
  // "4 ranks (tensor 2 x pipeline 1 x data 2) as threads of one process on HOST", for people; empty for one rank.
  std::string description(const MeshShape& shape) const;

 private:
  LaunchEnvironment environment_;
};

}  // namespace teratron
