// Shared library, loaded at its first use: programs start on machines that lack it.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace teratron {

// Folders in which the loader looks for this program's libraries: its -rpath, LD_LIBRARY_PATH, the system's. They need
// not exist.
std::vector<std::filesystem::path> library_folders();

class SharedLibrary {
 public:
  // Loads the first of `names` (as dlopen takes them) that can be loaded. It is never unloaded: its threads and the
  // driver may still use it. EnvironmentError: none can; with dlopen's reason for each, and `advice`.
  SharedLibrary(std::string title, std::initializer_list<const char*> names, const std::string& advice);

  // Finds a function. EnvironmentError: the library has none of that name.
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
