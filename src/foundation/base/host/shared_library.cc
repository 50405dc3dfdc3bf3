#include "base/host/shared_library.h"

#include <dlfcn.h>

#include <cstddef>

#include "base/error.h"

namespace teratron {

std::vector<std::filesystem::path> library_folders() {
  void* const program = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo needed = {};
  if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &needed) != 0) return {};
  std::vector<std::max_align_t> memory(needed.dls_size / sizeof(std::max_align_t) + 1);
  auto* const list = reinterpret_cast<Dl_serinfo*>(memory.data());
  list->dls_size = needed.dls_size;
  list->dls_cnt = needed.dls_cnt;
  if (dlinfo(program, RTLD_DI_SERINFO, list) != 0) return {};
  std::vector<std::filesystem::path> folders;
  for (unsigned i = 0; i < list->dls_cnt; ++i) folders.emplace_back(list->dls_serpath[i].dls_name);
  return folders;
}

SharedLibrary::SharedLibrary(std::string title, std::initializer_list<const char*> names, const std::string& advice)
    : title_(std::move(title)) {
  std::string reasons;
  for (const char* name : names) {
    library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw_environment_error("{} cannot be loaded ({}); {}", title_, reasons, advice);
}

void* SharedLibrary::address_of(const char* name) const {
  void* const address = dlsym(library_, name);
  if (address == nullptr) throw_environment_error("the {} library has no function {}; install another", title_, name);
  return address;
}

}  // namespace teratron
