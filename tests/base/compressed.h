// gzip and zstd data as other programs write them, and standard input that comes from a file.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace teratron::testing {

// One member.
inline std::string gzip(std::string_view text, int level = 6) {
  z_stream stream{};
  if (::deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}

// One frame, with a checksum as the program zstd writes it.
inline std::string zstd(std::string_view text, int level = 3) {
  ZSTD_CCtx* context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ::ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  ::ZSTD_freeCCtx(context);
  if (::ZSTD_isError(size) != 0) throw std::runtime_error(::ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

// While it lives, standard input is a file.
class StandardInput {
 public:
  explicit StandardInput(const std::filesystem::path& file) : before_(::dup(STDIN_FILENO)) {
    const int descriptor = ::open(file.c_str(), O_RDONLY);
    if (descriptor < 0 || ::dup2(descriptor, STDIN_FILENO) < 0)
      throw std::runtime_error("cannot open " + file.string());
    ::close(descriptor);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

}  // namespace teratron::testing
