// Formats that their first bytes tell.
#include <algorithm>
#include <array>
#include <string>

#include "data/text/content_kinds.h"

namespace teratron::content {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::size_t at;
  const char *what, *advice;
  bool needs_nul = false;  // letters that a text may begin with
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
    {"PAR1"sv, 0, "a Parquet file", kAsLines, true},
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

// Text in UTF-16 without a mark is ASCII with a NUL beside each letter.
std::optional<Finding> find_wide(std::string_view head) {
  if (head.starts_with("\xFF\xFE\x00\x00"sv) || head.starts_with("\x00\x00\xFE\xFF"sv)) return wide("UTF-32");
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return wide("UTF-16");
  constexpr std::size_t kLooked = 512, kFewest = 4;
  const std::string_view looked = head.substr(0, std::min(kLooked, head.size() / 2 * 2));
  std::array<std::size_t, 2> nuls{};
  for (std::size_t i = 0; i < looked.size(); ++i) nuls[i % 2] += looked[i] == '\0' ? 1 : 0;
  if (looked.size() < kFewest) return std::nullopt;
  const auto is_wide = [&](std::size_t letters, std::size_t zeros) {
    return nuls[letters] == 0 && 5 * nuls[zeros] >= 2 * looked.size();  // most of the half that could be
  };
  if (is_wide(0, 1)) return wide("UTF-16LE");
  if (is_wide(1, 0)) return wide("UTF-16BE");
  return std::nullopt;
}

bool begins_with_word(std::string_view text, std::string_view small) {
  if (text.size() < small.size()) return false;
  return std::ranges::equal(text.substr(0, small.size()), small,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; });
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
  // A pickle of protocol 2 to 5 ends in ".", which is far; its opcodes begin so.
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) {
    return Finding{"a pickle of Python's", kLeaveOut};
  }
  return find_wide(head);
}

std::optional<Finding> find_markup(std::string_view text) {
  const Finding page{"a page of HTML", "'teratron data extract' finds the article in it", true};
  while (text.starts_with("<!--")) {
    const std::size_t end = text.find("-->");
    if (end == text.npos) return std::nullopt;
    text.remove_prefix(end + 3);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  for (const std::string_view begin : {"<!doctype html"sv, "<html"sv, "<head>"sv, "<body"sv}) {
    if (begins_with_word(text, begin)) return page;
  }
  if (!begins_with_word(text, "<?xml") && !begins_with_word(text, "<!doctype ")) return std::nullopt;
  if (text.substr(0, 1024).find("<html") != text.npos) return page;
  return Finding{"XML", "take the texts out of it, and write them as JSON lines or plain text", true};
}

}  // namespace teratron::content
