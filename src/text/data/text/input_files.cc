#include "data/text/input_files.h"

#include <glob.h>
#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"
#include "base/utf8.h"
#include "data/text/content.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// `above`: the folders around `folder`, with links resolved.
void add_files_below(const fs::path& folder, std::span<const std::string_view> endings, std::vector<fs::path>& above,
                     std::vector<fs::path>& files) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  fs::directory_iterator entries(folder, error);
  if (error) throw_user_error("cannot read the folder '{}': {}", folder.string(), error.message());
  if (std::ranges::find(above, real) != above.end()) return;
  above.push_back(real);
  for (const fs::directory_entry& entry : entries) {
    if (is_hidden(entry.path())) continue;
    const std::string ending = content_ending(entry.path());
    if (entry.is_directory(error)) {
      add_files_below(entry.path(), endings, above, files);
    } else if (std::ranges::find(endings, ending) != endings.end()) {
      files.push_back(entry.path());
    }
  }
  above.pop_back();
}

void add_folder(const fs::path& folder, std::span<const std::string_view> endings, std::vector<fs::path>& files) {
  std::vector<fs::path> above, found;
  add_files_below(folder, endings, above, found);
  if (found.empty()) {
    std::string wanted;
    for (const std::string_view ending : endings) {
      wanted += fmt::format("{}{}", wanted.empty() ? "" : ending == endings.back() ? " or " : ", ", ending);
    }
    throw_user_error("there is no text in the folder '{}': no {} file, also not compressed (.gz, .zst)",
                     folder.string(), wanted);
  }
  std::ranges::sort(found, {}, [](const fs::path& path) { return path.native(); });
  files.insert(files.end(), found.begin(), found.end());
}

}  // namespace

std::vector<fs::path> find_matches(const fs::path& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&::globfree)> owner(&found, &::globfree);
  const int result = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  if (result == GLOB_NOMATCH) return {};
  if (result != 0) throw_user_error("cannot look for '{}': a folder of it cannot be read", pattern.string());
  std::vector<fs::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(paths, {}, [](const fs::path& path) { return path.native(); });
  return paths;
}

bool is_pattern(const fs::path& path) {
  std::error_code error;
  return path.native().find_first_of("*?[") != std::string::npos && !fs::exists(path, error);
}

std::vector<fs::path> find_input_files(std::span<const fs::path> named, std::span<const std::string_view> endings) {
  if (named.empty()) throw_user_error("no text files were given; name at least one");
  if (std::ranges::count_if(named, is_standard_stream) > 1) {
    throw_user_error("standard input (-) is named twice, and can be read once");
  }
  std::vector<fs::path> files;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      add_folder(path, endings, files);
    } else {
      files.push_back(path);
    }
  };
  for (const fs::path& path : named) {
    if (!is_pattern(path)) {
      add(path);
      continue;
    }
    const std::vector<fs::path> matches = find_matches(path);
    if (matches.empty()) throw_user_error("no file matches '{}'; check the pattern", path.string());
    std::ranges::for_each(matches, add);
  }
  return files;
}

std::int64_t bytes_of_input(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

std::int64_t bytes_of_inputs(std::span<const fs::path> files) {
  std::int64_t bytes = 0;
  for (const fs::path& file : files) {
    if (is_standard_stream(file)) continue;
    if (::access(file.c_str(), R_OK) != 0) {
      throw_user_error("cannot read '{}': {}; check the path and its permissions", file.string(), std::strerror(errno));
    }
    bytes += bytes_of_input(file);
  }
  return bytes;
}

void require_text(std::string_view text, std::int64_t offset, const fs::path& file) {
  if (offset == 0 && (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))) {
    throw_user_error("{0} is text in UTF-16, and UTF-8 is needed; convert it with iconv -f UTF-16 -t UTF-8",
                     name_of_input(file));
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    throw_user_error("{} is not text: it has a NUL at byte {} (of what is in it, where it is compressed); leave it out",
                     name_of_input(file), offset + static_cast<std::int64_t>(at));
  }
}

std::string utf8_fault(std::string_view text) {
  std::size_t at = 0;
  bool has_characters = false;  // of several bytes, so far
  while (at < text.size()) {
    const Utf8Step step = decode_utf8(text.substr(at));
    if (step.status != Utf8Status::kValid) break;
    has_characters = has_characters || step.length > 1;
    at += step.length;
  }
  constexpr std::size_t kLooked = 4096;
  const bool has_controls = std::ranges::any_of(text.substr(0, kLooked), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && std::string_view("\t\n\v\f\r\x1B").find(c) == std::string_view::npos;
  });
  return fmt::format("{:#04x} at byte {} cannot stand there; it seems to be {}", static_cast<unsigned char>(text[at]),
                     at,
                     has_controls     ? "no text: compressed, or a file of another program"
                     : has_characters ? "damaged, or joined from files of two encodings"
                                      : "in Latin-1, Windows-1252 or another encoding");
}

void require_utf8(std::string_view text, const fs::path& file, std::string_view format_flag) {
  if (simdjson::validate_utf8(text.data(), text.size())) return;
  throw_user_error(
      "{} is not UTF-8: {} (bytes of what is in it, where it is compressed); convert it, for example with iconv -f "
      "WINDOWS-1252 -t UTF-8{}",
      name_of_input(file), utf8_fault(text),
      format_flag.empty() ? "" : fmt::format(", or take its bytes as they are with {} text", format_flag));
}

}  // namespace teratron
