// What a file holds, told by its first bytes: plain text, JSON lines, a JSON array of documents, or something that no
// command reads as text. The one place that decides it, for files of any name, pipes and standard input alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace teratron {

// What the user says that files hold.
enum class TextFormat {
  kAuto,       // as recognise_content() finds
  kJsonLines,  // a JSON object a line
  kText,       // plain text, whatever it looks like: a file is one document, of any bytes but NUL
};

enum class ContentKind {
  kText,
  kJsonLines,  // a JSON object a line
  kJsonArray,  // one JSON array of objects
  kOther,
};

struct Content {
  ContentKind kind = ContentKind::kText;
  std::string refusal;       // of kOther: what it seems to be, and what to do
  bool may_be_page = false;  // of kOther: HTML, XML, WARC or an encoding of theirs, which `data extract` reads
  bool may_be_list = false;  // of kOther: a list of short texts could look so
  bool is_unclear = false;   // of kOther: it may be JSON lines with a fault, or text
};

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// As many bytes of a file, decompressed, as recognise_content() looks at.
inline constexpr std::size_t kContentHead = std::size_t{64} << 10;

// `head`: the first kContentHead bytes of what the file decompresses to, or all of them where there are fewer.
//
// JSON is what parses: a text that begins with "{" or "[" and goes on otherwise, as source code, LaTeX and links do, is
// plain text. One that begins with an object's first key and then is not JSON is refused, since it may be either: the
// user says what it is. A name that ends in .jsonl, .ndjson or .json (before .gz, .zst) makes it JSON lines, whose
// faults are told by their line. Pages, tables, settings, SQuAD's files, archives, other compression, documents of
// office programs, UTF-16 and the like are told by their first bytes, or by their name where those cannot tell.
Content recognise_content(std::string_view head, const std::filesystem::path& file);

// UserError, naming the file, where `content` is of kOther.
void require_readable(const Content& content, const std::filesystem::path& file);

// A line for the user where the file's name lets one expect another kind than was found; empty where it does not.
std::string surprise_of(const Content& content, const std::filesystem::path& file);

// Whether a file's name says that it holds a JSON object a line: .jsonl, .ndjson, .jsonlines or .ldjson, in any case,
// perhaps with .gz or .zst behind it.
bool is_named_json_lines(const std::filesystem::path& file);

// The ending that says what is in a file, in small letters: of "a.JSONL.gz" ".jsonl".
std::string content_ending(const std::filesystem::path& file);

// Looks into a file (not a pipe, which would lose what was read). UserError: it cannot be read.
Content content_of_file(const std::filesystem::path& file);

}  // namespace teratron
