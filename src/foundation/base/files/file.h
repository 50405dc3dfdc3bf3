// Files: reads, read-only maps, and writes that are seen either complete or not at all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace teratron {

// How long what comes through a pipe or from a terminal may take to come.
struct InputPatience {
  std::chrono::milliseconds notice = std::chrono::seconds(5);   // a line on standard error after each such wait
  std::chrono::milliseconds writer = std::chrono::seconds(10);  // until a process opens a named pipe to write to it
};

// The path that stands for standard input or output; a file of this name is "./-".
inline bool is_standard_stream(const std::filesystem::path& path) { return path == "-"; }

// How messages call what is read: "'corpus.txt'", "standard input".
std::string name_of_input(const std::filesystem::path& path);

// Reads a file, pipe or device, or standard input where `path` is "-", to its end. UserError: missing, unreadable, a
// folder, a disk; a named pipe that no process writes to; a device that gives more than kMostOfADevice, as /dev/zero
// would for ever.
class FileReader {
 public:
  static constexpr std::size_t kMostOfADevice = std::size_t{64} << 20;

  explicit FileReader(const std::filesystem::path& path, InputPatience patience = {});
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  // The next bytes, some of them at least; 0: the end.
  std::size_t read(std::span<char> to);

 private:
  void wait_for_data(std::chrono::steady_clock::time_point began, bool has_writer);

  std::string name_;  // for messages
  InputPatience patience_;
  int descriptor_;
  bool is_standard_input_, is_named_pipe_ = false, is_device_ = false;
  std::size_t bytes_read_ = 0;
  std::int64_t notices_ = 0;  // of the wait under way
};

// The whole content of `path`. UserError as FileReader.
std::string read_file(const std::filesystem::path& path, InputPatience patience = {});

// A read-only memory map of a whole file; an empty file maps to an empty span. Movable.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // UserError: missing, unreadable, not a regular file
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::filesystem::path& path() const { return path_; }
  // The pages in [begin, end) need not stay in this process' memory: who reads a large file once, from its beginning to
  // its end, takes little then. They can be read again.
  void release(std::size_t begin, std::size_t end) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// Writes to `path` + ".partial" and renames it onto `path` in commit(); without commit() nothing is left behind, unless
// it is to be gone on with. A symbolic link stays, and what it leads to is replaced so. A device or pipe is no file
// that could be replaced: it is written to, as the bytes come, and so is standard output, "-". Every failure (full
// disk, no permission, missing folder, a pipe that no process reads) is an EnvironmentError that names the file and the
// cause; a full disk is a NoSpaceError, a reader that is gone OutputClosed.
//
// One writes at a time, where the file system has locks: another waits a moment, then there is an EnvironmentError. Who
// works long for a file keeps others away from it meanwhile (output_lock.h).
class AtomicFile {
 public:
  // `kept`: goes on behind the first bytes of what an earlier one has left behind; there are as many.
  explicit AtomicFile(std::filesystem::path path, std::uint64_t kept = 0);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Any span of plain values, in this machine's (little-endian) byte order.
  template <class T>
  void write_values(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  std::uint64_t bytes_written() const { return bytes_written_; }  // with those kept
  // From now on (or not) what is written stays where it is without commit().
  void keep_partial(bool keeps) { keeps_partial_ = keeps; }
  // The file that a `path` with its links leads to, and where it is until commit(); both are empty for a `path` that is
  // no file to replace.
  static std::filesystem::path target_of(const std::filesystem::path& path);
  static std::filesystem::path partial_of(const std::filesystem::path& path);
  void sync();    // all that was written so far is on the disk (fsync): a full disk shows here at the latest
  void commit();  // sync, then rename

 private:
  void open_partial();
  void flush();
  std::filesystem::path path_, partial_;  // no partial_: path_ itself is written to
  std::string buffer_;
  std::uint64_t bytes_written_ = 0;
  int descriptor_ = -1;
  bool committed_ = false, keeps_partial_ = false;
};

// What helps where a write failed with this errno, as part of a message: "free some space", "check its permissions".
std::string_view remedy_of_write_error(int error);

// Opens what may be a pipe, with further flags of open(2): writing then waits for its reader, opening does not.
// EnvironmentError as AtomicFile's. The caller closes it.
int open_for_writing(const std::filesystem::path& path, int flags);

// What writing to `path` failed of (an errno), as the error of its kind.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error);

void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Creates `path` and its parents. EnvironmentError where that fails.
void make_folders(const std::filesystem::path& path);

// Makes renames inside `folder` durable (fsync of the folder).
void sync_folder(const std::filesystem::path& folder);

}  // namespace teratron
