#include "emulated_gpu/ptx/launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/decoder.h"
#include "emulated_gpu/ptx/symbols.h"

namespace teratron::emulated::ptx {
namespace {

constexpr std::size_t kMostShared = 227 << 10;  // of a block on Hopper

// Kernels by their common names, decoded when they first run.
struct Library {
  struct Entry {
    KernelText text;
    std::shared_ptr<const Program> program;
    bool has_run = false;
  };

  std::mutex mutex;
  std::map<std::string, Entry> kernels;
  std::map<const void*, std::string> names;  // common, by address
  std::atomic<bool> in_use = false;

  Entry& entry_of(const void* kernel) {
    auto [name, is_new] = names.try_emplace(kernel);
    if (is_new) name->second = common_name(symbol_at(kernel));
    const auto found = kernels.find(name->second);
    check(found != kernels.end(), fmt::format("there is PTX of kernel {}", name->second));
    if (found->second.program == nullptr) found->second.program = std::make_shared<Program>(decode(found->second.text));
    return found->second;
  }
};

Library& library() {
  static Library one;
  return one;
}

std::vector<std::byte> packed(const Program& program, std::span<const KernelArgument> arguments) {
  check_equal(arguments.size(), program.parameters.size(), "arguments of " + program.kernel);
  std::vector<std::byte> bytes(program.parameter_bytes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    check_equal(arguments[i].bytes, parameter.bytes, fmt::format("bytes of argument {} of {}", i, program.kernel));
    check_equal(arguments[i].alignment, parameter.alignment,
                fmt::format("alignment of argument {} of {}", i, program.kernel));
    std::memcpy(bytes.data() + parameter.offset, arguments[i].value, parameter.bytes);
  }
  return bytes;
}

void run_program(const Program& program, const LaunchedShape& shape, std::span<const KernelArgument> arguments,
                 std::vector<Allocation> allocations) {
  const Dim3 &grid = shape.grid, &block = shape.block;
  const unsigned threads = block.x * block.y * block.z;
  check(threads >= 1 && threads <= std::min(program.most_threads, 1024U) && grid.x >= 1 && grid.y >= 1 && grid.z >= 1 &&
            grid.y < 65536 && grid.z < 65536,
        fmt::format("a launch of {} is of 1 to {} threads a block, and of some blocks", program.kernel,
                    program.most_threads));
  check(program.dynamic_shared_at + shape.dynamic_shared <= kMostShared,
        fmt::format("{} asks for as much shared memory as there is", program.kernel));
  const std::vector<std::byte> parameters = packed(program, arguments);
  GlobalMemory global(std::move(allocations));
  Block runner(program, grid, block, shape.dynamic_shared, parameters, global);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) runner.run({x, y, z});
    }
  }
}

}  // namespace

void use_folder(const std::filesystem::path& folder) {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".ptx") continue;
    std::ifstream in(file.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    for (KernelText& kernel : kernels_of(text, file.path().filename())) {
      std::string name = common_name(kernel.name);
      check(!all.kernels.contains(name), fmt::format("kernel {} is in one file", name));
      all.kernels[std::move(name)] = {std::move(kernel), nullptr};
    }
  }
  if (all.kernels.empty()) throw_environment_error("{}: there is no kernel in PTX", folder.string());
  all.in_use = true;
}

bool is_in_use() { return library().in_use; }

std::size_t static_shared_of(const void* kernel) {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  return all.entry_of(kernel).program->static_shared;
}

void run(const void* kernel, const LaunchedShape& shape, std::span<const KernelArgument> arguments,
         std::vector<Allocation> allocations) {
  Library& all = library();
  std::shared_ptr<const Program> program;
  {
    const std::lock_guard lock(all.mutex);
    Library::Entry& entry = all.entry_of(kernel);
    entry.has_run = true;
    program = entry.program;
  }
  run_program(*program, shape, arguments, std::move(allocations));
}

void run(const KernelText& kernel, const LaunchedShape& shape, std::span<const KernelArgument> arguments,
         std::vector<Allocation> allocations) {
  run_program(decode(kernel), shape, arguments, std::move(allocations));
}

std::vector<std::string> kernels_without_a_run() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, entry] : all.kernels) {
    if (!entry.has_run) names.push_back(demangled(entry.text.name));
  }
  return names;
}

Edited::Edited(const std::string& part, const std::function<std::string(const std::string&)>& edit) {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  for (auto& [name, entry] : all.kernels) {
    if (demangled(entry.text.name).find(part) == std::string::npos) continue;
    std::string body = edit(entry.text.body);
    if (body == entry.text.body) continue;
    before_.emplace_back(name, std::exchange(entry.text.body, std::move(body)));
    entry.program = nullptr;
  }
}

Edited::~Edited() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  for (auto& [name, body] : before_) {
    all.kernels[name].text.body = std::move(body);
    all.kernels[name].program = nullptr;
  }
}

}  // namespace teratron::emulated::ptx
