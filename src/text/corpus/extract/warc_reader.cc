#include "corpus/extract/warc_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "corpus/extract/header_lines.h"

namespace teratron {
namespace {

constexpr std::size_t kPieceOfWarc = std::size_t{256} << 10, kLongestWarcHead = std::size_t{64} << 10;
constexpr std::string_view kWarcMagic = "WARC/";
constexpr std::string_view kNoRecord =
    "it does not begin as a record of WARC does; if there is one before it, the length of that may be wrong";

}  // namespace

WarcReader::WarcReader(const std::filesystem::path& path) : name_(name_of_input(path)), reader_(path) {}

// Fills the buffer; false at the end.
bool WarcReader::fetch() {
  buffer_.erase(0, std::exchange(next_, 0));
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPieceOfWarc);
  std::size_t got = 0;
  try {
    got = reader_.read(std::span(buffer_).subspan(before));
  } catch (const UserError& error) {
    if (number_ == 0) throw;
    throw_user_error("{} (in record {}, which begins at byte {} of what the file holds)", error.what(), number_,
                     begin_);
  }
  buffer_.resize(before + got);
  return got > 0;
}

void WarcReader::fail(const std::string& what) const {
  throw_user_error("{}: record {}, which begins at byte {}{}: {}; download the file again, or leave it out", name_,
                   number_, begin_, reader_.is_compressed() ? " of what the file holds" : "", what);
}

bool WarcReader::is_warc() {
  while (buffer_.size() < kWarcMagic.size() && fetch()) {
  }
  return buffer_.starts_with(kWarcMagic);
}

bool WarcReader::begins_with(char first) {
  std::size_t at = buffer_.find_first_not_of(" \t\r\n");
  while (at == buffer_.npos && fetch()) at = buffer_.find_first_not_of(" \t\r\n");
  return at != buffer_.npos && buffer_[at] == first;
}

// Returns false when the file ends.
bool WarcReader::skip_line_ends() {
  while (true) {
    while (next_ < buffer_.size() && (buffer_[next_] == '\r' || buffer_[next_] == '\n')) {
      ++next_;
      ++offset_;
    }
    if (next_ < buffer_.size()) return true;
    if (!fetch()) return false;
  }
}

// Reads a head, with the empty line at its end.
std::string WarcReader::read_head() {
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(next_);
    HeaderLines lines(rest);
    std::optional<std::string_view> line = lines.next();
    while (line && !line->empty()) line = lines.next();
    if (line) {
      std::string head(rest.substr(0, lines.bytes_read()));
      next_ += head.size();
      offset_ += std::ssize(head);
      return head;
    }
    if (!rest.starts_with(kWarcMagic.substr(0, rest.size())) || rest.size() > kLongestWarcHead) {
      fail(std::string(kNoRecord));
    }
    if (!fetch()) fail("the file ends in its head");
  }
}

bool WarcReader::next(WarcRecord& record) {
  skip(left_);
  if (!skip_line_ends()) return false;
  ++number_;
  begin_ = offset_;
  const std::string head = read_head();
  HeaderLines lines(head);
  const std::string_view version = lines.next().value_or("");
  if (!version.starts_with("WARC/1.")) {
    fail(version.starts_with(kWarcMagic) ? fmt::format("its version is {}, and 1.0 and 1.1 are read", version)
                                         : std::string(kNoRecord));
  }
  record = {.length = -1, .number = number_};
  for (auto line = lines.next(); line && !line->empty(); line = lines.next()) {
    const HeaderField field = header_field(*line);
    if (equals_ignoring_case(field.name, "warc-type")) record.type = ascii_lower(field.value);
    if (equals_ignoring_case(field.name, "warc-date")) record.date = field.value;
    if (equals_ignoring_case(field.name, "content-type")) record.content_type = ascii_lower(field.value);
    if (equals_ignoring_case(field.name, "warc-identified-payload-type")) record.seen_type = field.value;
    if (equals_ignoring_case(field.name, "warc-target-uri")) {
      const bool is_bracketed = field.value.starts_with('<') && field.value.ends_with('>');
      record.url = is_bracketed ? field.value.substr(1, field.value.size() - 2) : field.value;
    }
    if (equals_ignoring_case(field.name, "content-length")) {
      const auto [end, error] =
          std::from_chars(field.value.data(), field.value.data() + field.value.size(), record.length);
      if (error != std::errc() || end != field.value.data() + field.value.size()) record.length = -1;
    }
  }
  if (record.length < 0) fail("its head has no Content-Length that is a number");
  left_ = record.length;
  return true;
}

std::string WarcReader::read(std::int64_t most) {
  std::string content;
  const auto wanted = static_cast<std::size_t>(std::clamp<std::int64_t>(most, 0, left_));
  while (content.size() < wanted) {
    if (next_ == buffer_.size() && !fetch()) {
      fail(fmt::format("it is cut short, {} bytes of its content are missing", left_));
    }
    const std::size_t taken = std::min(wanted - content.size(), buffer_.size() - next_);
    content.append(buffer_, next_, taken);
    next_ += taken;
    offset_ += static_cast<std::int64_t>(taken);
    left_ -= static_cast<std::int64_t>(taken);
  }
  return content;
}

void WarcReader::skip(std::int64_t bytes) {
  while (bytes > 0) bytes -= std::ssize(read(std::min<std::int64_t>(bytes, kPieceOfWarc)));
}

std::string WarcReader::read_plain(std::int64_t most) {
  std::string content;
  while (next_ < buffer_.size() || fetch()) {
    const std::size_t room = static_cast<std::size_t>(most) - content.size();
    content.append(buffer_, next_, room);
    next_ = buffer_.size();
  }
  return content;
}

}  // namespace teratron
