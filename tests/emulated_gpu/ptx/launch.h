// Runs kernels by the PTX that nvcc made of them. A kernel of the back end is found by its address: its symbol in this
// program is, but for the name of unnamed namespaces, that of its .entry.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "emulated_gpu/emulator.h"
#include "emulated_gpu/ptx/global_memory.h"
#include "emulated_gpu/ptx/kernel_text.h"

namespace teratron::emulated::ptx {

// From now on kernels run by the PTX files of the folder, in all threads. EnvironmentError if it has none.
void use_folder(const std::filesystem::path& folder);
bool is_in_use();

// Bytes of a block; InternalError if there is no PTX of the kernel.
std::size_t static_shared_of(const void* kernel);

// InternalError as Block::run says, and for arguments and shapes that the kernel does not take.
void run(const void* kernel, const LaunchedShape& shape, std::span<const KernelArgument> arguments,
         std::vector<Allocation> allocations);
void run(const KernelText& kernel, const LaunchedShape& shape, std::span<const KernelArgument> arguments,
         std::vector<Allocation> allocations);

// Demangled names of the kernels that have not run yet.
std::vector<std::string> kernels_without_a_run();

// While it lives, kernels whose demangled name contains `part` have the body that `edit` makes of theirs. In no two
// threads.
class Edited {
 public:
  Edited(const std::string& part, const std::function<std::string(const std::string&)>& edit);
  Edited(const Edited&) = delete;
  Edited& operator=(const Edited&) = delete;
  ~Edited();
  int kernels() const { return static_cast<int>(before_.size()); }  // whose body changed

 private:
  std::vector<std::pair<std::string, std::string>> before_;  // bodies, by common name
};

}  // namespace teratron::emulated::ptx
