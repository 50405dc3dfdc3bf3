// Formats recognised by their first bytes.
#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"
#include "base/utf8.h"
#include "data/text/content_kinds.h"
#include "data/text/input_files.h"
#include "tokenizer/unicode.h"

namespace teratron::content {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::size_t at;
  const char *what, *advice;
  bool needs_nul = false;  // the letters could begin a text
};

constexpr const char *kUnpack = "unpack it, and name what is in it", *kAsText = "save or export it as plain text",
                     *kAsLines =
                         "write its column of texts as JSON lines, for example with pandas' to_json(orient="
                         "'records', lines=True)",
                     *kLeaveOut = "leave it out";

constexpr auto kSignatures = std::to_array<Signature>({
    {"\xFD\x37\x7A\x58\x5A\x00"sv, 0, "compressed with xz", "decompress it with xz -d, or pipe xz -dc into -"},
    {"LZIP"sv, 0, "compressed with lzip", "decompress it, or pipe lzip -dc into -", true},
    {"\x04\x22\x4D\x18"sv, 0, "compressed with lz4", "decompress it with lz4 -d, or pipe lz4 -dc into -"},
    {"\x1F\x9D"sv, 0, "compressed with compress", "decompress it with gzip -d"},
    {"\xFF\x06\x00\x00sNaPpY"sv, 0, "compressed with snappy", "decompress it"},
    {"\x1F\x8B\x08"sv, 0, "compressed twice", "decompress it once with gzip -d"},
    {"\x28\xB5\x2F\xFD"sv, 0, "compressed twice", "decompress it once"},
    {"PK\x03\x04"sv, 0, "a zip archive (also .docx, .xlsx, .epub, .odt, .npz and PyTorch's .pt are)", kUnpack},
    {"PK\x05\x06"sv, 0, "an empty zip archive", kLeaveOut},
    {"7z\xBC\xAF\x27\x1C"sv, 0, "a 7z archive", kUnpack},
    {"Rar!\x1A\x07"sv, 0, "a RAR archive", kUnpack},
    {"ustar"sv, 257, "a tar archive", "unpack it with tar -x, and name the files"},
    {"PARE"sv, 0, "an encrypted Parquet file", "write it again without encryption", true},
    {"ARROW1"sv, 0, "an Arrow file", kAsLines, true},
    {"\xFF\xFF\xFF\xFF"sv, 0, "an Arrow stream", kAsLines},
    {"FEA1"sv, 0, "a Feather file", kAsLines, true},
    {"ORC"sv, 0, "an ORC file", kAsLines, true},
    {"Obj\x01"sv, 0, "an Avro file", kAsLines},
    {"SQLite format 3\x00"sv, 0, "an SQLite database", kAsLines},
    {"\x89HDF\r\n\x1A\n"sv, 0, "an HDF5 file", kAsLines},
    {"\x93NUMPY"sv, 0, "a NumPy array", kLeaveOut},
    {"GGUF"sv, 0, "a model's weights (GGUF)", kLeaveOut, true},
    {"MMIDIDX\x00\x00"sv, 0, "the index of a tokenised corpus", "name the text that it was made of"},
    {"(lp0\n"sv, 0, "a pickle of Python's", kLeaveOut},
    {"(lp1\n"sv, 0, "a pickle of Python's", kLeaveOut},
    {"(dp0\n"sv, 0, "a pickle of Python's", kLeaveOut},
    {"(dp1\n"sv, 0, "a pickle of Python's", kLeaveOut},
    {"(tp0\n"sv, 0, "a pickle of Python's", kLeaveOut},
    {"]q\x00"sv, 0, "a pickle of Python's", kLeaveOut},
    {"}q\x00"sv, 0, "a pickle of Python's", kLeaveOut},
    {"filedesc://"sv, 0, "an ARC file, which came before WARC",
     "convert it to WARC, for example with warcio recompress"},
    {"WARC/1."sv, 0, "a WARC file", "'teratron data extract' finds the articles in it"},
    {"%PDF-"sv, 0, "a PDF document", "convert it to text, for example with pdftotext"},
    {"%!PS"sv, 0, "a PostScript document", "convert it to text, for example with ps2ascii"},
    {"{\\rtf"sv, 0, "an RTF document", kAsText},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, 0, "a document of an office program (.doc, .xls)", kAsText},
    {"AT&TFORM"sv, 0, "a DjVu document", "convert it to text, for example with djvutxt", true},
    {"\x89PNG\r\n"sv, 0, "a picture (PNG)", kLeaveOut},
    {"\xFF\xD8\xFF"sv, 0, "a picture (JPEG)", kLeaveOut},
    {"GIF8"sv, 0, "a picture (GIF)", kLeaveOut, true},
    {"RIFF"sv, 0, "a picture, sound or film (RIFF)", kLeaveOut, true},
    {"OggS"sv, 0, "a sound (Ogg)", kLeaveOut, true},
    {"ID3"sv, 0, "a sound (MP3)", kLeaveOut, true},
    {"fLaC"sv, 0, "a sound (FLAC)", kLeaveOut, true},
    {"\x7F"
     "ELF"sv,
     0, "a program (ELF)", kLeaveOut},
    {"\x00\x61\x73\x6D"sv, 0, "a program (WebAssembly)", kLeaveOut},
});

Finding wide(const std::string& encoding) {
  return {"text in " + encoding, "UTF-8 is needed; convert it with iconv -f " + encoding + " -t UTF-8", true};
}

// Counts of NUL at each byte of a unit of `width` bytes.
std::array<std::size_t, 4> count_nuls(std::string_view text, std::size_t width) {
  std::array<std::size_t, 4> nuls{};
  for (std::size_t i = 0; i < text.size(); ++i) nuls[i % width] += text[i] == '\0' ? 1 : 0;
  return nuls;
}

// Whether 16-bit units are text: no half of a surrogate pair, no control character, mostly letters, numbers and spaces,
// and some punctuation or spaces.
bool is_text_in_units(std::string_view text, bool is_big) {
  std::size_t units = 0, words = 0, breaks = 0;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2, ++units) {
    const auto high = static_cast<unsigned char>(text[i + (is_big ? 0 : 1)]),
               low = static_cast<unsigned char>(text[i + (is_big ? 1 : 0)]);
    const char32_t code = static_cast<char32_t>(high) * 256 + low;
    const bool is_break =
        code == ' ' || code == '\n' || code == 0x3000 || code == 0x3001 || code == 0x3002 || code == 0xFF0C;
    if (code >= 0xD800 && code < 0xF900) return false;  // nor private use
    if (code < ' ' && code != '\t' && code != '\n' && code != '\r') return false;
    breaks += is_break ? 1 : 0;
    const CharClass kind = class_of(code);
    words += is_break || kind == CharClass::kLetter || kind == CharClass::kNumber ? 1 : 0;
  }
  return breaks > 0 && words * 5 >= units * 4;
}

// Text in UTF-16 or UTF-32 without a mark. Mostly ASCII text has NULs beside each letter; other text is text in 16-bit
// units and has controls in bytes.
std::optional<Finding> find_wide(std::string_view head) {
  if (head.starts_with("\xFF\xFE\x00\x00"sv) || head.starts_with("\x00\x00\xFE\xFF"sv)) return wide("UTF-32");
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return wide("UTF-16");
  constexpr std::size_t kLooked = 512, kFewest = 4;
  const std::string_view looked = head.substr(0, std::min(kLooked, head.size() / 4 * 4));
  if (looked.size() >= 2 * kFewest) {
    const std::size_t characters = looked.size() / 4;
    const auto nuls = count_nuls(looked, 4);
    if (nuls[3] == characters && nuls[2] == characters && nuls[0] == 0) return wide("UTF-32LE");
    if (nuls[0] == characters && nuls[1] == characters && nuls[3] == 0) return wide("UTF-32BE");
  }
  const std::string_view pairs = head.substr(0, std::min(kLooked, head.size() / 2 * 2));
  const auto nuls = count_nuls(pairs, 2);
  if (pairs.size() < kFewest) return std::nullopt;
  const auto is_wide = [&](std::size_t letters, std::size_t zeros) {
    return nuls[letters] == 0 && 5 * nuls[zeros] >= 2 * pairs.size();  // most of the possible half
  };
  if (is_wide(0, 1)) return wide("UTF-16LE");
  if (is_wide(1, 0)) return wide("UTF-16BE");
  const bool has_controls = std::ranges::any_of(pairs, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && std::string_view("\t\n\v\f\r\x1B").find(c) == std::string_view::npos;
  });
  if (!has_controls) return std::nullopt;
  const bool is_little = is_text_in_units(pairs, false), is_big = is_text_in_units(pairs, true);
  if (is_little != is_big) return wide(is_little ? "UTF-16LE" : "UTF-16BE");
  return std::nullopt;
}

// Compression with a two-byte signature, whose checksum can be verified; no letters are such bytes.
bool begins_as_zlib(std::string_view head) {
  if (head.size() < 8 || head[0] != '\x78') return false;
  const auto second = static_cast<unsigned char>(head[1]);
  return (0x7800 + second) % 31 == 0 && (second & 0x20) == 0 && !is_utf8(head.substr(0, 64)) &&
         !is_utf8(head.substr(0, 61));
}

// A pickle of protocol 0 that begins with an object: a line "cmodule", a line with a name, and a mark or a memo index.
bool begins_as_pickled_object(std::string_view head) {
  if (!head.starts_with('c')) return false;
  const std::size_t first = head.find('\n'), second = first == head.npos ? first : head.find('\n', first + 1);
  if (second == head.npos || second + 2 >= head.size()) return false;
  const auto is_name = [](std::string_view name) {
    return name.size() > 1 && std::ranges::all_of(name, [](char c) {
             return is_ascii_letter(c) || is_ascii_digit(c) || c == '_' || c == '.';
           });
  };
  if (!is_name(head.substr(1, first - 1)) || !is_name(head.substr(first + 1, second - first - 1))) return false;
  const char mark = head[second + 1], after = head[second + 2];
  return (mark == 'p' && is_ascii_digit(after)) || (mark == '(' && (after == 'c' || after == 'l' || after == 'd'));
}

}  // namespace

std::optional<Finding> find_signature(std::string_view head) {
  for (const Signature& one : kSignatures) {
    if (head.size() < one.at || !head.substr(one.at).starts_with(one.bytes)) continue;
    if (!one.needs_nul || head.find('\0') != head.npos) {
      return Finding{one.what, one.advice, one.bytes.starts_with("WARC")};
    }
  }
  // bzip2: "BZh", a digit, and pi.
  if (head.starts_with("BZh") && head.size() > 9 && head.substr(4).starts_with("1AY&SY")) {
    return Finding{"compressed with bzip2", "decompress it with bzip2 -d, or pipe bzip2 -dc into -"};
  }
  // A pickle of protocol 2 to 5 ends in ".", which is far; these are its first opcodes.
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) {
    return Finding{"a pickle of Python's", kLeaveOut};
  }
  if (begins_as_pickled_object(head)) return Finding{"a pickle of Python's", kLeaveOut};
  if (begins_as_zlib(head))
    return Finding{"compressed with zlib", "decompress it, for example with zlib-flate -uncompress"};
  return find_wide(head);
}

std::optional<Finding> find_markup(std::string_view text, bool is_all) {
  const Finding page{"a page of HTML", "'teratron data extract' finds the article in it", true};
  const Finding xml{"XML", "take the texts out of it, and write them as JSON lines or plain text", true};
  const bool has_comment = text.starts_with("<!--");
  while (text.starts_with("<!--")) {
    const std::size_t end = text.find("-->");
    if (end == text.npos) return is_all ? std::nullopt : std::optional(page);  // no text begins so
    text = without_leading_space(text.substr(end + 3));
  }
  if (has_comment && text.empty() && !is_all) return page;
  const std::string_view tag = text.substr(0, std::min(text.find('>'), text.size()));
  const auto is_tag = [&](std::string_view name) {
    if (!begins_ignoring_case(text, name) || tag.size() == text.size()) return false;
    const std::string_view rest = tag.substr(std::min(name.size(), tag.size()));
    constexpr std::string_view kSpaces = " \t\r\n/";
    const bool has_attributes = rest.find('=') != rest.npos;  // "<title of a book>" has none
    return rest.find_first_not_of(kSpaces) == rest.npos || (has_attributes && kSpaces.find(rest[0]) != rest.npos);
  };
  for (const std::string_view begin : {"<!doctype html"sv, "<html"sv, "<body"sv}) {
    if (begins_ignoring_case(text, begin)) return page;
  }
  for (const std::string_view name : {"<head"sv, "<meta"sv, "<title"sv}) {
    if (is_tag(name)) return page;
  }
  // Markdown may begin with a table of HTML and continue after it.
  if (is_tag("<table") && begins_ignoring_case(text.substr(std::min(text.find("<t", 2), text.size())), "<t")) {
    const std::string_view shown = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (!is_all || shown.ends_with("</table>") || shown.ends_with("</TABLE>")) return page;
  }
  for (const std::string_view name :
       {"<mediawiki"sv, "<rss"sv, "<feed"sv, "<svg"sv, "<rdf:rdf"sv, "<urlset"sv, "<tei"sv, "<opml"sv}) {
    if (is_tag(name)) return xml;
  }
  if (is_tag("<doc") && tag.find(" id=") != tag.npos) return xml;
  if (text.starts_with('<') && tag.size() < text.size() && tag.find(" xmlns") != tag.npos) return xml;
  if (!begins_ignoring_case(text, "<?xml") && !begins_ignoring_case(text, "<!doctype ")) return std::nullopt;
  if (text.substr(0, 1024).find("<html") != text.npos) return page;
  return xml;
}

}  // namespace teratron::content
