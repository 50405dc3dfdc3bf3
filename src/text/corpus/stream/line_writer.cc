#include "corpus/stream/line_writer.h"

#include <zstd.h>

#include <new>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"

namespace teratron {
namespace {

constexpr std::size_t kFrameBytes = std::size_t{4} << 20;

bool ends_in(const std::filesystem::path& path, std::string_view ending) {
  return equals_ignoring_case(path.extension().string(), ending);
}

}  // namespace

std::string fault_of_line_file(const std::filesystem::path& path) {
  if (!ends_in(path, ".gz")) return "";
  return fmt::format("cannot write '{}': gzip is read, not written; name it .jsonl or .jsonl.zst", path.string());
}

// A frame with a checksum, as the program zstd writes it. It depends on its content alone, which is complete before
// compression begins.
class LineWriter::Compressor {
 public:
  Compressor() : context_(::ZSTD_createCCtx()) {
    if (!context_) throw std::bad_alloc();
    ::ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  std::string_view frame_of(std::string_view content) {
    frame_.resize(::ZSTD_compressBound(content.size()));
    const std::size_t size =
        ::ZSTD_compress2(context_.get(), frame_.data(), frame_.size(), content.data(), content.size());
    check(::ZSTD_isError(size) == 0, ::ZSTD_getErrorName(size));
    return std::string_view(frame_).substr(0, size);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* one) const { ::ZSTD_freeCCtx(one); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::string frame_;
};

LineWriter::LineWriter(const std::filesystem::path& path, LinePoint from)
    : file_(path, from.bytes), frame_(std::move(from.tail)) {
  if (const std::string fault = fault_of_line_file(path); !fault.empty()) throw UserError(fault);
  if (ends_in(path, ".zst")) compressor_ = std::make_unique<Compressor>();
}

LineWriter::~LineWriter() = default;

void LineWriter::write(std::string_view line) {
  if (!compressor_) {
    file_.write(line);
    file_.write("\n");
    return;
  }
  frame_ += line;
  frame_ += '\n';
  if (frame_.size() >= kFrameBytes) end_frame();
}

void LineWriter::end_frame() {
  file_.write(compressor_->frame_of(frame_));
  frame_.clear();
}

LinePoint LineWriter::point() {
  file_.sync();
  return {.bytes = file_.bytes_written(), .tail = frame_};
}

void LineWriter::finish() {
  // A file without lines is an empty frame: zero bytes are no zstd file.
  if (compressor_ && (!frame_.empty() || file_.bytes_written() == 0)) end_frame();
  file_.sync();
}

void LineWriter::commit() {
  finish();
  file_.commit();
}

}  // namespace teratron
