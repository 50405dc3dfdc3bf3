#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace teratron {

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
