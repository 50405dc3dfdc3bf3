// Trains a random model in a random layout on emulated GPUs: as a rank under a launcher, whose device is its own and
// reaches the others' through the fake NCCL, or with all ranks as threads on one device.
//   program layout SEED             prints the layout: its ranks, its stages and its schedule; 0: a pipeline of four
//   stages program train SEED              prints losses, norms of gradients, and a checksum of every parameter's
//   weights at the
//                                   rank that gathers them: as processes, all ranks together print the lines of threads
//   program memory RANKS            prints "all N bytes are counted" where the back end of a stage of so many knows all
//   that
//                                   its device has given away, for NCCL, too
//   program lose SEED RANK CALL SIGNAL   the same, but in its operation number CALL that rank takes SIGNAL (0: it
//   throws)
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/checksum.h"
#include "emulated_gpu/emulator.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

RandomPipeline pipeline_of(std::uint32_t seed) {
  RandomPipeline random(seed);
  random.study.steps = 2;  // in the second one, passes are captured
  if (seed == 0) {
    random.layout = {.mesh = {.pipeline = 4}};
    random.study.batch = 1;  // a forward pass runs when the gradient that depends on it is already awaited
    random.study.tokens = 5;
    random.study.config.num_layers = 4;
    return random;
  }
  if (seed % 5 == 1) random.cut_jointly();
  random.layout.vocabulary_parallel = seed % 3 == 2 && random.layout.mesh.pipeline > 1;
  return random;
}

class Fails final : public CallObserver {
 public:
  explicit Fails(int signal) : signal_(signal) {}
  void begin(std::string_view operation) override {
    if (operation != "attention_forward") return;
    if (signal_ == 0) throw EnvironmentError("this rank fails in its attention, as asked");
    std::raise(signal_);
  }
  void end(std::string_view) override {}

 private:
  const int signal_;
};

void print(const Result& result) {
  const auto bytes_of = [](const std::vector<double>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  };
  for (std::size_t step = 0; step < result.losses.size(); ++step) {
    fmt::print("step {}: loss {:a}, norm {:a}\n", step, result.losses[step], result.norms[step]);
  }
  for (const auto& [name, values] : result.by_name) fmt::print("{}: {}\n", name, checksum_of(bytes_of(values)));
}

void check_memory(Communicator& world) {
  const auto backend = make_cuda_backend({.channels = true});
  Mesh mesh = make_mesh(world, {.pipeline = world.size()});
  mesh.attach(backend.get());
  const auto in_use = static_cast<std::int64_t>(emulated::device_memory_in_use());
  check_equal(backend->taken_bytes(), in_use, "bytes that are counted, and that are in use");
  fmt::print("all {} bytes are counted\n", in_use);
}

int run(const std::vector<std::string>& words) {
  try {
    if (words.at(0) == "memory") {
      run_ranks(detect_launch(TensorMemory::kDevice), std::stoi(words.at(1)), check_memory);
      return 0;
    }
    const RandomPipeline random = pipeline_of(static_cast<std::uint32_t>(std::stoul(words.at(1))));
    if (words.at(0) == "layout") {
      const MeshShape& mesh = random.layout.mesh;
      fmt::print("{} {} {}\n", mesh.ranks(), mesh.pipeline, pipeline::name_of(random.layout.schedule));
      return 0;
    }
    const LaunchEnvironment environment = detect_launch(TensorMemory::kDevice);
    const bool are_processes = environment.kind == RankKind::kProcesses;
    const bool fails = words.at(0) == "lose" && environment.process == std::stoi(words.at(2));
    Fails observer(fails ? std::stoi(words.at(3)) : 0);
    print(train(
        random.study, random.layout,
        [&] {
          auto backend = make_cuda_backend({.channels = are_processes});
          if (fails) backend->set_observer(&observer);
          return backend;
        },
        environment));
    return 0;
  } catch (const EnvironmentError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "wrong: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace teratron::testing

int main(int argc, char** argv) {
  const int code = teratron::testing::run({argv + 1, argv + argc});
  teratron::leave_launch(code);
  return code;
}
