// A library of NVIDIA's that is loaded when it is first asked for, so that programs built with it start on machines
// that have none.
#pragma once

#include <initializer_list>
#include <string>

namespace teratron::cuda {

class SharedLibrary {
 public:
  // The first of `names`, as dlopen takes them, that can be loaded; it is never unloaded: its own threads and the
  // driver may hold on to it. EnvironmentError: why none can, and `advice`.
  SharedLibrary(std::string title, std::initializer_list<const char*> names, const std::string& advice);

  // EnvironmentError if it has no such function.
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  const std::string title_;
  void* library_ = nullptr;
};

}  // namespace teratron::cuda
