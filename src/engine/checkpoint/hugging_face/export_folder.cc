#include "checkpoint/hugging_face/export_folder.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/open_file_name.h"
#include "base/files/write_all.h"
#include "checkpoint/hugging_face/sentence_transformer.h"
#include "checkpoint/tokenizer_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

bool is_in_folder(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
}

// Names of files in the folder itself, and in those below; others are ignored, since anybody may have written the list.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string name; std::getline(lines, name);) {
    const bool is_template = name.starts_with(kMoreTemplates) && is_in_folder(name.substr(kMoreTemplates.size()));
    if (is_in_folder(name) || is_template || name == kPoolingFile) names.push_back(name);
  }
  return names;
}

std::string content_of(int descriptor) {
  std::string text;
  for (ssize_t got = 1; got > 0;) {
    char piece[1 << 12];
    got = ::pread(descriptor, piece, sizeof(piece), static_cast<off_t>(text.size()));
    if (got > 0) text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

ExportFolder::ExportFolder(fs::path folder, std::vector<std::string> files)
    : folder_(std::move(folder)), unfinished_(folder_ / kUnfinished), files_(std::move(files)) {
  std::error_code error;
  was_there_ = fs::exists(folder_, error);
  if (!fs::is_regular_file(fs::symlink_status(unfinished_, error))) check_holds_only({});
  make_folders(folder_);
  try {
    begin();
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!was_there_) ::rmdir(folder_.c_str());
    throw;
  }
}

void ExportFolder::begin() {
  do {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    descriptor_ = ::open(unfinished_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (descriptor_ < 0) {
      throw_environment_error("cannot write '{}': {}; {} or choose another folder", unfinished_.string(),
                              std::strerror(errno), remedy_of_write_error(errno));
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw_user_error("another process is writing to '{}'; wait for its end, or name another folder",
                       folder_.string());
    }
  } while (!names_open_file(unfinished_, descriptor_, LastLink::kRefused));  // its owner has just deleted it
  const std::vector<std::string> leftovers = names_in(content_of(descriptor_));
  check_holds_only(leftovers);
  remove_files(leftovers);
  const std::string names = fmt::format("{}\n", fmt::join(files_, "\n"));
  if (const int error = write_all(descriptor_, names); error != 0) {
    ::unlink(unfinished_.c_str());
    throw_environment_error("cannot write '{}': {}; {} or choose another folder", unfinished_.string(),
                            std::strerror(error), remedy_of_write_error(error));
  }
  sync_folder(folder_);
}

ExportFolder::~ExportFolder() {
  if (!finished_) {
    remove_files(files_);
    ::unlink(unfinished_.c_str());
    if (!was_there_) ::rmdir(folder_.c_str());
  }
  ::close(descriptor_);
}

void ExportFolder::finish() {
  sync_folder(folder_);
  if (::unlink(unfinished_.c_str()) != 0) {
    throw_environment_error("cannot delete '{}': {}", unfinished_.string(), std::strerror(errno));
  }
  finished_ = true;
  sync_folder(folder_);
}

// Files beside `ours` may be another model, whose tokenizer would be mixed with ours.
void ExportFolder::check_holds_only(const std::vector<std::string>& ours) const {
  const auto is_ours = [&](const fs::path& path) {
    return (path.filename() == kUnfinished && fs::is_regular_file(fs::symlink_status(path))) ||
           std::ranges::any_of(ours, [&](const std::string& file) {
             const fs::path whole = folder_ / file, parent = whole.parent_path();
             if (parent != folder_) return path == parent && fs::is_directory(fs::symlink_status(parent));
             return path == whole || path == AtomicFile::partial_of(whole);
           });
  };
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (is_ours(entry.path())) continue;
    throw_user_error("'{}' is not empty, it holds '{}'; nothing is overwritten, name a new folder", folder_.string(),
                     entry.path().filename().string());
  }
}

void ExportFolder::remove_files(const std::vector<std::string>& files) const {
  for (const std::string& file : files) {
    const fs::path path = folder_ / file, parent = path.parent_path();
    std::error_code error;
    if (parent != folder_ && !fs::is_directory(fs::symlink_status(parent, error))) continue;  // a link leads elsewhere
    ::unlink(path.c_str());
    ::unlink(AtomicFile::partial_of(path).c_str());
    if (parent != folder_) ::rmdir(parent.c_str());
  }
}

}  // namespace teratron
