#include "corpus/extract/body_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/ascii.h"
#include "base/utf8.h"

namespace teratron {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kBytesToJudge = std::size_t{64} << 10;

struct FileFormat {
  std::string_view name, magic;
  std::size_t at = 0;  // offset of the magic bytes
};

constexpr auto kFileFormats = std::to_array<FileFormat>({
    {"PNG", "\x89PNG"sv},
    {"JPEG", "\xFF\xD8\xFF"sv},
    {"GIF", "GIF87a"sv},
    {"GIF", "GIF89a"sv},
    {"WebP", "WEBP"sv, 8},
    {"RIFF", "RIFF"sv},
    {"TIFF", "II*\0"sv},
    {"TIFF", "MM\0*"sv},
    {"BMP", "\0\0\0\0"sv, 6},
    {"icon", "\0\0\1\0"sv},
    {"PSD", "8BPS"sv},
    {"JPEG XL", "\xFF\x0A"sv},
    {"PDF", "%PDF-"sv},
    {"PostScript", "%!PS"sv},
    {"RTF", "{\\rtf"sv},
    {"DjVu", "AT&TFORM"sv},
    {"OLE", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv},
    {"ZIP", "PK\3\4"sv},
    {"ZIP", "PK\5\6"sv},
    {"ZIP", "PK\7\10"sv},
    {"gzip", "\x1F\x8B"sv},
    {"compress", "\x1F\x9D"sv},
    {"zstd", "\x28\xB5\x2F\xFD"sv},
    {"bzip2", "BZh"sv},
    {"xz", "\xFD\x37zXZ\0"sv},
    {"LZ4", "\4\x22M\x18"sv},
    {"RAR", "Rar!\x1A\7"sv},
    {"7z", "7z\xBC\xAF\x27\x1C"sv},
    {"tar", "ustar"sv, 257},
    {"cpio", "070701"sv},
    {"ar", "!<arch>\n"sv},
    {"WOFF", "wOFF"sv},
    {"WOFF2", "wOF2"sv},
    {"OpenType", "OTTO"sv},
    {"TrueType", "\0\1\0\0"sv},
    {"TrueType", "true\0"sv},
    {"TrueType", "ttcf"sv},
    {"MP4", "ftyp"sv, 4},
    {"QuickTime", "moov"sv, 4},
    {"Matroska", "\x1A\x45\xDF\xA3"sv},
    {"Ogg", "OggS"sv},
    {"FLAC", "fLaC"sv},
    {"MP3", "ID3"sv},
    {"MPEG", "\0\0\1\xBA"sv},
    {"MPEG", "\0\0\1\xB3"sv},
    {"FLV", "FLV\1"sv},
    {"ASF", "\x30\x26\xB2\x75\x8E\x66\xCF\x11"sv},
    {"MIDI", "MThd"sv},
    {"Flash", "FWS"sv},
    {"Flash", "CWS"sv},
    {"Flash", "ZWS"sv},
    {"ELF",
     "\x7F"
     "ELF"sv},
    {"PE", "MZ"sv},
    {"Java", "\xCA\xFE\xBA\xBE"sv},
    {"WebAssembly", "\0asm"sv},
    {"SQLite", "SQLite format 3\0"sv},
    {"HDF5", "\x89HDF\r\n\x1A\n"sv},
});

// Formats whose first bytes are no text, or with which no text begins.
bool is_telling(std::string_view magic) {
  return magic.size() >= 5 || magic == "%!PS" ||
         std::ranges::any_of(magic, [](char c) { return static_cast<signed char>(c) < ' ' || c == '\x7F'; });
}

// White space, and ESC, with which ISO-2022-JP changes its letters.
constexpr bool is_control(char32_t code) {
  return (code < 0x20 && code != '\t' && code != '\n' && code != '\v' && code != '\f' && code != '\r' &&
          code != 0x1B) ||
         (code >= 0x7F && code < 0xA0 && code != 0x85);
}

// Number of printable ASCII characters at the beginning of `text`.
std::size_t ascii_prefix(std::string_view text) {
  const auto* const end =
      std::ranges::find_if(text, [](char c) { return static_cast<signed char>(c) < ' ' || c == '\x7F'; });
  return static_cast<std::size_t>(end - text.begin());
}

bool looks_like_utf16(std::string_view bytes) {
  return bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF") || !utf16_without_mark(bytes).empty();
}

}  // namespace

Packing packing_of(std::string_view body) {
  if (body.starts_with("\x1F\x8B\x08")) return Packing::kGzip;
  if (body.starts_with("\x28\xB5\x2F\xFD")) return Packing::kZstd;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(body[i]); };
  const bool has_zlib_header = body.size() > 2 && (byte(0) & 0xF) == 8 && byte(0) <= 0x78 &&
                               (byte(0) * 256 + byte(1)) % 31 == 0 && (byte(1) & 0x20) == 0;
  return has_zlib_header && !can_be_text(body) ? Packing::kZlib : Packing::kNone;
}

std::string_view file_format_of(std::string_view body) {
  const std::string_view trimmed = without_ascii_spaces(body.substr(0, kBytesToJudge));
  for (const std::string_view bytes : {body, trimmed}) {
    for (const FileFormat& one : kFileFormats) {
      if (!bytes.substr(std::min(one.at, bytes.size())).starts_with(one.magic)) continue;
      if (one.name == "BMP" && !bytes.starts_with("BM")) continue;
      // "MZ", "ID3" and similar are also words.
      if (is_telling(one.magic) || !can_be_text(body)) return one.name;
    }
  }
  return {};
}

bool can_be_text(std::string_view bytes) {
  bytes = bytes.substr(0, kBytesToJudge);
  const auto controls = static_cast<std::size_t>(std::ranges::count_if(bytes, [](char c) {
    const auto code = static_cast<std::uint8_t>(c);
    return code < 0x80 && is_control(code);
  }));
  return controls * 100 <= bytes.size() || looks_like_utf16(bytes);
}

std::string_view utf16_without_mark(std::string_view bytes) {
  std::array<std::size_t, 2> nuls{};
  for (std::size_t i = 0; i < bytes.size(); ++i) nuls[i % 2] += bytes[i] == '\0' ? 1 : 0;
  const auto [less, more] = std::minmax(nuls[0], nuls[1]);
  if (more * 20 <= bytes.size() || less * 5 >= more) return {};
  return nuls[0] == more ? "utf-16be" : "utf-16le";
}

bool is_garbage(std::string_view text) {
  std::size_t characters = 0, bad = 0;
  while (!text.empty()) {
    const std::size_t plain = ascii_prefix(text);
    characters += plain;
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Utf8Step step = decode_utf8(text);
    text.remove_prefix(step.length);
    ++characters;
    bad += step.status != Utf8Status::kValid || step.code == 0xFFFD || is_control(step.code) ? 1 : 0;
  }
  return bad * 20 >= characters && bad > 0;
}

bool is_program(std::string_view text) {
  std::int64_t bytes = 0, signs = 0;
  char before = ' ';
  for (const char c : text) {
    bytes += is_ascii_space(c) ? 0 : 1;
    signs += (c == '{' || c == '}' || c == ';' || c == '=') && c != before ? 1 : 0;
    before = c;
  }
  return signs * 50 >= bytes && signs > 0;
}

bool is_encoded_data(std::string_view text) {
  constexpr std::size_t kLongWord = 50;
  std::size_t all = 0, long_words = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t\n\r\f"));
    const bool is_long = word.size() >= kLongWord && ascii_prefix(word) == word.size() &&
                         std::ranges::any_of(word, [](char c) { return is_ascii_letter(c) || is_ascii_digit(c); });
    all += word.size();
    long_words += is_long ? word.size() : 0;
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return long_words * 2 >= all && long_words > 0;
}

bool begins_with_markup(std::string_view body) {
  if (body.starts_with("\xEF\xBB\xBF")) body.remove_prefix(3);
  body = without_ascii_spaces(body);
  return body.size() > 1 && body[0] == '<' && (is_ascii_letter(body[1]) || body[1] == '!' || body[1] == '?');
}

bool begins_as_html(std::string_view body) {
  constexpr std::size_t kLooked = 4096;
  if (!begins_with_markup(body)) return false;
  const std::string begin = ascii_lower(body.substr(0, kLooked));
  constexpr auto kTags = std::to_array<std::string_view>({"<html", "<head", "<body", "<!doctype html", "<p", "<div"});
  return std::ranges::any_of(kTags, [&](std::string_view tag) { return begin.find(tag) != begin.npos; });
}

}  // namespace teratron
