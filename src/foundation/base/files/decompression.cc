#include "base/files/decompression.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace teratron {

class DecompressingReader::Decoder {
 public:
  struct Step {
    std::size_t taken = 0, made = 0;   // bytes of the input and of the output
    const char* fault = nullptr;       // error in the input after the taken bytes
    bool is_window_too_large = false;  // the fault: intact data that take more memory than we give
  };
  virtual ~Decoder() = default;
  virtual Step decode(std::span<const char> input, std::span<char> output) = 0;
  // Whether a member or frame has just ended: the file may end here.
  virtual bool may_end() const = 0;
  virtual const char* name() const = 0;
};

namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr std::size_t kMagicBytes = 4;

class GzipDecoder final : public DecompressingReader::Decoder {
 public:
  GzipDecoder() {
    constexpr int kGzipAlone = 15 + 16;  // the largest window, with gzip's header and checksum
    if (::inflateInit2(&stream_, kGzipAlone) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { ::inflateEnd(&stream_); }

  Step decode(std::span<const char> input, std::span<char> output) override {
    Step step;
    if (may_end_) {
      // Tapes and some tools fill the last block with zeros.
      while (step.taken < input.size() && input[step.taken] == '\0') ++step.taken;
      if (step.taken == input.size()) return step;
      ::inflateReset(&stream_);
      may_end_ = false;
    }
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const std::size_t given = std::min(input.size() - step.taken, kMost), room = std::min(output.size(), kMost);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data() + step.taken));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    step.taken += given - stream_.avail_in;
    step.made = room - stream_.avail_out;
    may_end_ = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {  // Z_BUF_ERROR: more of either is needed
      step.fault = stream_.msg != nullptr ? stream_.msg : "unknown data";
    }
    return step;
  }
  bool may_end() const override { return may_end_; }
  const char* name() const override { return "gzip"; }

 private:
  z_stream stream_{};
  bool may_end_ = false;
};

class ZstdDecoder final : public DecompressingReader::Decoder {
 public:
  ZstdDecoder() : context_(::ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }

  Step decode(std::span<const char> input, std::span<char> output) override {
    if (may_end_ && input.empty()) return {};  // else a new frame would begin
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const std::size_t left = ::ZSTD_decompressStream(context_.get(), &out, &in);
    Step step{.taken = in.pos, .made = out.pos};
    if (::ZSTD_isError(left) != 0) step.fault = ::ZSTD_getErrorName(left);
    step.is_window_too_large = ::ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge;
    may_end_ = left == 0;
    return step;
  }
  bool may_end() const override { return may_end_; }
  const char* name() const override { return "zstd"; }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool may_end_ = false;
};

std::unique_ptr<DecompressingReader::Decoder> decoder_for(std::string_view first) {
  if (first.starts_with("\x1F\x8B\x08")) return std::make_unique<GzipDecoder>();
  // pzstd and others begin with a frame to skip, of which they choose the last half byte.
  const bool is_skippable = first.size() >= kMagicBytes && (static_cast<unsigned char>(first[0]) & 0xF0) == 0x50 &&
                            first.substr(1, 3) == "\x2A\x4D\x18";
  if (first.starts_with("\x28\xB5\x2F\xFD") || is_skippable) return std::make_unique<ZstdDecoder>();
  return nullptr;
}

}  // namespace

DecompressingReader::DecompressingReader(const std::filesystem::path& path, InputPatience patience)
    : name_(name_of_input(path)), file_(path, patience) {
  while (input_.size() < kMagicBytes && fetch()) {
  }
  decoder_ = decoder_for({input_.data(), input_.size()});
}

DecompressingReader::~DecompressingReader() = default;

// Adds to the input; false at the file's end.
bool DecompressingReader::fetch() {
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(std::exchange(next_, 0)));
  const std::size_t before = input_.size();
  input_.resize(before + kInputBytes);
  const std::size_t got = file_.read(std::span(input_).subspan(before));
  input_.resize(before + got);
  fetched_ += static_cast<std::int64_t>(got);
  return got > 0;
}

std::size_t DecompressingReader::read(std::span<char> to) {
  const std::size_t count = std::min(to.size(), peeked_.size() - peeked_next_);
  if (count == 0) {
    if (peek_fault_) std::rethrow_exception(peek_fault_);
    return read_on(to);
  }
  peeked_.copy(to.data(), count, peeked_next_);
  peeked_next_ += count;
  if (peeked_next_ == peeked_.size()) peeked_.clear(), peeked_next_ = 0;
  return count;
}

std::string_view DecompressingReader::peek(std::size_t most) {
  peeked_.erase(0, std::exchange(peeked_next_, 0));
  std::size_t used = peeked_.size();
  if (used < most) peeked_.resize(most);
  try {
    while (used < most && !peek_fault_) {
      const std::size_t got = read_on(std::span(peeked_).subspan(used));
      if (got == 0) break;
      used += got;
    }
  } catch (const UserError&) {
    peek_fault_ = std::current_exception();
  }
  peeked_.resize(used);
  return std::string_view(peeked_).substr(0, most);
}

std::size_t DecompressingReader::read_on(std::span<char> to) {
  if (!decoder_) return read_plain(to);
  while (true) {
    const Decoder::Step step = decoder_->decode(std::span(input_).subspan(next_), to);
    next_ += step.taken;
    if (step.made > 0) return step.made;  // an error after these bytes comes again
    if (step.is_window_too_large) {
      throw_user_error(
          "{} was compressed by zstd with a window of more than 128 MiB; decompress it (zstd -d --long=31 FILE), and "
          "name the result",
          name_);
    }
    if (step.fault != nullptr) throw_damaged(step.fault);
    if (next_ < input_.size() || fetch()) continue;
    if (decoder_->may_end()) return 0;
    throw_user_error("{} is cut short: its {} data break off after {} bytes; copy or download it again", name_,
                     decoder_->name(), fetched_);
  }
}

std::size_t DecompressingReader::read_plain(std::span<char> to) {
  const std::size_t count = std::min(to.size(), input_.size() - next_);
  if (count == 0) {
    const std::size_t got = file_.read(to);
    fetched_ += static_cast<std::int64_t>(got);
    return got;
  }
  std::copy_n(input_.begin() + static_cast<std::ptrdiff_t>(next_), count, to.begin());
  next_ += count;
  return count;
}

void DecompressingReader::throw_damaged(const std::string& cause) const {
  throw_user_error("{} is damaged: its {} data cannot be read at byte {} ({}); copy or download it again", name_,
                   decoder_->name(), bytes_taken(), cause);
}

void require_unpacked_size(std::size_t bytes, std::size_t most, const std::string& what) {
  if (bytes <= most) return;
  throw_user_error(
      "{} is more than {} MiB when it is decompressed, the limit for compressed data; decompress it into a file, and "
      "name that",
      what, most >> 20);
}

std::string read_decompressed(const std::filesystem::path& path, std::size_t most_unpacked) {
  DecompressingReader reader(path);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string content;
  std::size_t used = 0;
  while (true) {
    if (content.size() - used < kPiece) content.resize(std::max(used + kPiece, used + used / 2));
    const std::size_t got = reader.read(std::span(content).subspan(used));
    used += got;
    if (got == 0) break;
    if (reader.is_compressed()) require_unpacked_size(used, most_unpacked, name_of_input(path));
  }
  content.resize(used);
  return content;
}

}  // namespace teratron
