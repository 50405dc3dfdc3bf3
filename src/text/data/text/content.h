// Recognises the content of a file by its first bytes: plain text, JSON lines, a JSON array of documents, Parquet, or
// something that no command reads as text. All commands use it, for files of any name, pipes and standard input.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace teratron {

// The format of files as given by the user.
enum class TextFormat {
  kAuto,       // as recognise_content() finds
  kJsonLines,  // a JSON object a line
  kText,       // plain text, whatever it looks like: a file is one document of any bytes but NUL
};

enum class ContentKind {
  kText,
  kJsonLines,  // a JSON object a line
  kJsonArray,  // one JSON array of objects
  kParquet,    // a table of rows, which are read as objects
  kOther,
};

struct Content {
  ContentKind kind = ContentKind::kText;
  std::string refusal;       // kOther: what it seems to be, and what to do
  bool may_be_page = false;  // kOther: HTML, XML, WARC or an encoding of theirs, which `data extract` reads
  bool may_be_list = false;  // kOther: a list of short texts could look so
  bool is_unclear = false;   // kOther: JSON lines with a fault, or text
};

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
std::string_view without_byte_order_mark(std::string_view text);

// Bytes of a file, decompressed, that recognise_content() examines.
inline constexpr std::size_t kContentHead = std::size_t{64} << 10;

// `head`: the first kContentHead bytes of the decompressed file, or all if there are fewer.
//
// JSON is what parses. A text that begins with "{" or "[" and continues otherwise, as source code, LaTeX and links do,
// is plain text. One that begins with an object's first key and then is not JSON is refused, since it may be either:
// the user decides. A name that ends in .jsonl, .ndjson or .json (before .gz, .zst) makes it JSON lines, whose faults
// are reported with their line. Pages, tables, settings, SQuAD's files, archives, other compression, office documents,
// UTF-16 and so on are recognised by their first bytes, or by their name if those do not suffice.
Content recognise_content(std::string_view head, const std::filesystem::path& file);

// Flag of most commands that says what files hold.
inline constexpr std::string_view kFormatFlag = "--format";

// UserError, naming the file, if `content` is kOther. `format_flag`: the flag that it advises; empty: there is none.
void require_readable(const Content& content, const std::filesystem::path& file,
                      std::string_view format_flag = kFormatFlag);

// A notice for the user if the file's name suggests another kind than was found; otherwise empty.
std::string surprise_of(const Content& content, const std::filesystem::path& file,
                        std::string_view format_flag = kFormatFlag);

// Whether a file's name says that it holds JSON lines: .jsonl, .ndjson, .jsonlines or .ldjson, in any case, also before
// .gz or .zst.
bool is_named_json_lines(const std::filesystem::path& file);

// The ending that names a file's content, in lower case: ".jsonl" for "a.JSONL.gz".
std::string content_ending(const std::filesystem::path& file);

// Reads the head of a file (not of a pipe, which would lose it). UserError: it cannot be read.
Content content_of_file(const std::filesystem::path& file);

}  // namespace teratron
