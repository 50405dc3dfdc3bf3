// Files: reads, read-only maps, and writes that appear complete or not at all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace teratron {

// Time that the data of a pipe or terminal may take to come.
struct InputPatience {
  std::chrono::milliseconds notice = std::chrono::seconds(5);   // one line on standard error per such wait
  std::chrono::milliseconds writer = std::chrono::seconds(10);  // until a writer opens a named pipe
};

// Whether `path` is "-", standard input or output. A file of that name is "./-".
inline bool is_standard_stream(const std::filesystem::path& path) { return path == "-"; }

// Whether `path` is standard input by any name: "-", /dev/stdin, /dev/fd/0.
bool names_standard_input(const std::filesystem::path& path);

// Whether `path` gives its bytes once: standard input, a pipe or a socket.
bool is_stream(const std::filesystem::path& path);

// Name of an input in messages: "'corpus.txt'", "standard input".
std::string name_of_input(const std::filesystem::path& path);

// Reads a file, a pipe, a device, or standard input ("-") to its end. UserError: missing, unreadable, a folder, a disk,
// a named pipe without a writer, a device that gives more than kMostOfADevice (as /dev/zero does).
class FileReader {
 public:
  static constexpr std::size_t kMostOfADevice = std::size_t{64} << 20;

  explicit FileReader(const std::filesystem::path& path, InputPatience patience = {});
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  // Reads at least one byte; returns how many, 0 at the end.
  std::size_t read(std::span<char> to);

 private:
  void wait_for_data(std::chrono::steady_clock::time_point began, bool has_writer);

  std::string name_;  // for messages
  InputPatience patience_;
  int descriptor_;
  bool shares_flags_;  // with other programs, as standard input and a socket do: reading may wait
  bool is_named_pipe_ = false, is_device_ = false;
  std::size_t bytes_read_ = 0;
  std::int64_t notices_ = 0;  // of the current wait
};

// Whole content of `path`. UserError as FileReader's.
std::string read_file(const std::filesystem::path& path, InputPatience patience = {});

// Read-only memory map of a whole file. An empty file maps to an empty span. Movable.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // UserError: missing, unreadable, not a regular file
  MappedFile(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::filesystem::path& path() const { return path_; }

  // Gives the memory of a part of bytes(), in whole pages, back until it is read again: so one pass over a file of any
  // size holds little of it.
  void release(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// Writes to `path` + ".partial" and renames it onto `path` in commit(). Without commit() the partial file is deleted,
// unless keep_partial() says otherwise. A symbolic link stays, and its target is replaced by a file of the same
// permissions, which its owner may write. Devices, pipes and open files ("-", /dev/stdout) cannot be replaced: they get
// the bytes as they come. Every failure (full disk, no permission, missing folder, a pipe without a reader) is an
// EnvironmentError that names the file and the cause. A full disk is a NoSpaceError, a reader that has ended
// OutputClosed, links that lead to one another are a UserError.
//
// Where the file system has locks, one process writes at a time. Another waits two seconds, then throws an
// EnvironmentError. Long commands use an OutputLock (output_lock.h) too.
class AtomicFile {
 public:
  // `kept`: goes on after this many bytes of the partial file, which has at least as many.
  explicit AtomicFile(std::filesystem::path path, std::uint64_t kept = 0);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Writes a span of plain values in this machine's (little-endian) byte order.
  template <class T>
  void write_values(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  std::uint64_t bytes_written() const { return bytes_written_; }  // including `kept`
  // Keeps the partial file at the end without commit(), or not.
  void keep_partial(bool keeps) { keeps_partial_ = keeps; }
  // File that `path` leads to through its links, and its partial file. Both are empty where `path` is no file to
  // replace.
  static std::filesystem::path target_of(const std::filesystem::path& path);
  static std::filesystem::path partial_of(const std::filesystem::path& path);
  void sync();    // brings all bytes so far to the disk (fsync), where a full disk shows at the latest
  void commit();  // sync, then rename, which is brought to the disk too

 private:
  void open_partial();
  void flush();
  std::filesystem::path path_, partial_;  // empty partial_: path_ itself is written
  std::string buffer_;
  std::uint64_t bytes_written_ = 0;
  int descriptor_ = -1;
  bool committed_ = false, keeps_partial_ = false;
};

// Remedy of a failed write with this errno, for messages: "free some space", "check its permissions".
std::string_view remedy_of_write_error(int error);

// Opens a file or pipe for writing, with more flags of open(2), or copies the descriptor that /dev/stdout and the like
// name. Opening does not wait for a pipe's reader, writing does. EnvironmentError as AtomicFile's. The caller closes
// it.
int open_for_writing(const std::filesystem::path& path, int flags);

// Throws the error of a write to `path` that failed with this errno.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error);

// Throws the UserError of a `path` to write whose symbolic links lead to one another.
[[noreturn]] void throw_link_loop(const std::filesystem::path& path);

void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Creates `path` and its parents, durably. UserError: no name, a file is in the way, or links lead to one another.
// EnvironmentError: another fault.
void make_folders(const std::filesystem::path& path);

// Makes names inside `folder` durable (fsync of the folder), unless it may not be read.
void sync_folder(const std::filesystem::path& folder);

}  // namespace teratron
