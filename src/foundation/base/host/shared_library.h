// A shared library that is loaded when it is first needed, so that programs start on machines that lack it.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace teratron {

// Where the loader looks for this program's libraries: what it was linked with as its path (-rpath), LD_LIBRARY_PATH,
// and the system's folders. Not all of them need exist.
std::vector<std::filesystem::path> library_folders();

class SharedLibrary {
 public:
  // Loads the first of `names` (as dlopen takes them) that can be loaded. It is never unloaded: threads of its own and
  // the driver may still use it. EnvironmentError with dlopen's reason for each name, and `advice`.
  SharedLibrary(std::string title, std::initializer_list<const char*> names, const std::string& advice);

  // EnvironmentError if it has no such function.
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address_of(name));
  }

  void* handle() const { return library_; }  // dlopen's

 private:
  void* address_of(const char* name) const;

  const std::string title_;
  void* library_ = nullptr;
};

}  // namespace teratron
