// Commands that run on many ranks: the layout's flags, starting the ranks, and what they tell of themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/faults.h"
#include "comm/launch.h"
#include "comm/mesh.h"
#include "options/fields.h"

namespace teratron {

// The layout of commands that only read a model; training has its own fields of the same names.
struct LayoutOptions {
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1, threads = 0;

  Faults faults() const;
  MeshShape mesh() const {
    return {.tensor = static_cast<int>(tensor_parallel),
            .pipeline = static_cast<int>(pipeline_parallel),
            .data = static_cast<int>(data_parallel)};
  }
};

// Ranks that share one copy of the model: by tensors, by layers.
void add_model_parallel_fields(FieldList& list, LayoutOptions& options);
void add_data_parallel_field(FieldList& list, LayoutOptions& options, std::string help);
void add_threads_field(FieldList& list, LayoutOptions& options);

// What a rank's part of a command is given.
struct Rank {
  Communicator& world;
  std::shared_ptr<Mesh> mesh;
  const LaunchEnvironment& environment;

  bool is_first() const { return world.rank() == 0; }  // the one that talks
  int ranks_in_this_process() const { return environment.kind == RankKind::kThreads ? world.size() : 1; }
  // Bytes, of every rank in order: "[5, 5]": of its device's memory where it has one, else of the process's, which
  // ranks that share it share evenly. Every rank calls it.
  std::string peak_memory_json(const Allocator& memory) const;
};

// Made first thing in a command; then run(), once.
class RankLauncher {
 public:
  explicit RankLauncher(std::int64_t threads);  // of all ranks of this process together; 0: one a core

  // Calls `body` on each rank of the layout. `options`, as to_toml gives them, are those this process was started with:
  // UserError with the differences where those of another process are different.
  void run(const MeshShape& shape, const std::string& options, const std::function<void(const Rank&)>& body) const;

  const LaunchEnvironment& environment() const { return environment_; }
  // "4 ranks (tensor 2 x pipeline 1 x data 2) as threads of one process on HOST", for people; empty for one rank.
  std::string description(const MeshShape& shape) const;

 private:
  LaunchEnvironment environment_;
};

}  // namespace teratron
