// Entry of all fuzz targets: libFuzzer calls it with one input after another.
#include "fuzz.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace teratron::fuzz {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::path(fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()) /
                  fmt::format("teratron-fuzz-{}", ::getpid());
  Folder() { fs::create_directories(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

const fs::path& folder() {
  static const Folder folder;
  return folder.path;
}

fs::path put(std::string_view name, std::string_view bytes) {
  const fs::path path = folder() / name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "the input is written as a file");
  ::close(file);
  return path;
}

std::vector<std::string_view> parts_of(std::string_view input, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = input.find(separator);
    parts.push_back(input.substr(0, end));
    if (end == std::string_view::npos) return parts;
    input.remove_prefix(end + 1);
  }
}

unsigned take_byte(std::string_view& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  return byte;
}

void require(bool holds, std::string_view property) {
  if (holds) return;
  fmt::print(stderr, "fault: it does not hold that {}\n", property);
  std::abort();
}

}  // namespace teratron::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    teratron::fuzz::parse({reinterpret_cast<const char*>(bytes), size});
  } catch (const teratron::UserError& error) {
    teratron::fuzz::require(*error.what() != '\0', "an error has a message");
  } catch (const teratron::EnvironmentError&) {
  }
  return 0;
}
