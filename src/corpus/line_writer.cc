#include "corpus/line_writer.h"

#include <zstd.h>

#include <new>
#include <string>

#include "base/error.h"

namespace teratron {

// One zstd frame with a checksum, as the program zstd writes it.
struct LineWriter::Compressor {
  Compressor() : context(::ZSTD_createCCtx()), buffer(::ZSTD_CStreamOutSize(), '\0') {
    if (!context) throw std::bad_alloc();
    ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  }
  struct Free {
    void operator()(ZSTD_CCtx* one) const { ::ZSTD_freeCCtx(one); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context;
  std::string buffer;

  void run(std::string_view bytes, ZSTD_EndDirective directive, AtomicFile& file) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    const bool ends = directive == ZSTD_e_end;
    for (bool is_done = false; !is_done;) {
      ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
      const std::size_t left = ::ZSTD_compressStream2(context.get(), &out, &in, directive);
      check(::ZSTD_isError(left) == 0, ::ZSTD_getErrorName(left));
      file.write(std::string_view(buffer).substr(0, out.pos));
      is_done = ends ? left == 0 : in.pos == in.size;
    }
  }
};

LineWriter::LineWriter(const std::filesystem::path& path) : file_(path) {
  if (path.extension() == ".gz") {
    throw_user_error("cannot write '{}': gzip is read, not written; name it .jsonl or .jsonl.zst", path.string());
  }
  if (path.extension() == ".zst") compressor_ = std::make_unique<Compressor>();
}

LineWriter::~LineWriter() = default;

void LineWriter::put(std::string_view bytes) {
  if (compressor_) {
    compressor_->run(bytes, ZSTD_e_continue, file_);
  } else {
    file_.write(bytes);
  }
}

void LineWriter::write(std::string_view line) {
  put(line);
  put("\n");
}

void LineWriter::commit() {
  if (compressor_) compressor_->run({}, ZSTD_e_end, file_);
  file_.commit();
}

}  // namespace teratron
