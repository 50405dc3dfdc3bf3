#include "data/text/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "data/text/content_kinds.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

constexpr auto kLinesEndings = std::to_array<std::string_view>({".jsonl", ".ndjson", ".jsonlines", ".ldjson"});

bool is_named_json(const std::filesystem::path& file) {
  return is_named_json_lines(file) || content_ending(file) == ".json";
}

// The letters could begin a text, but no text has a NUL.
bool begins_as_parquet(std::string_view head) { return head.starts_with("PAR1") && head.find('\0') != head.npos; }

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

std::string content_ending(const std::filesystem::path& file) {
  const auto small_ending = [](const std::filesystem::path& path) { return ascii_lower(path.extension().string()); };
  const std::string ending = small_ending(file);
  return ending == ".gz" || ending == ".zst" ? small_ending(file.stem()) : ending;
}

bool is_named_json_lines(const std::filesystem::path& file) {
  return std::ranges::find(kLinesEndings, content_ending(file)) != kLinesEndings.end();
}

Content content::refused(const Finding& finding) {
  return {.kind = ContentKind::kOther,
          .refusal = fmt::format("seems to be {}: {}", finding.what, finding.advice),
          .may_be_page = finding.may_be_page,
          .may_be_list = finding.may_be_list};
}

Content recognise_content(std::string_view head, const std::filesystem::path& file) {
  const bool is_all = head.size() < kContentHead, is_named = is_named_json(file);
  if (begins_as_parquet(head)) return {.kind = ContentKind::kParquet};
  if (const auto found = content::find_signature(head)) {
    return {ContentKind::kOther, fmt::format("seems to be {}: {}", found->what, found->advice), found->may_be_page};
  }
  const std::string_view text = without_leading_space(without_byte_order_mark(head));
  if (text.starts_with('{') || text.starts_with('[')) {
    if (const auto found = content::find_json(text, is_all, is_named)) return *found;
  }
  if (is_named) return {.kind = ContentKind::kJsonLines};
  for (const auto& found : {content::find_markup(text, is_all), content::find_ending(content_ending(file)),
                            content::find_table(without_byte_order_mark(head), is_all)}) {
    if (found) return content::refused(*found);
  }
  return {};
}

void require_readable(const Content& content, const std::filesystem::path& file, std::string_view format_flag) {
  if (content.kind != ContentKind::kOther) return;
  std::string advice;
  if (!format_flag.empty()) {
    advice = content.is_unclear ? fmt::format(", or say what it is with {0} jsonl or {0} text", format_flag)
                                : fmt::format("; or take it as plain text with {} text", format_flag);
  }
  throw_user_error("{} {}{}", name_of_input(file), content.refusal, advice);
}

std::string surprise_of(const Content& content, const std::filesystem::path& file, std::string_view format_flag) {
  const std::string ending = content_ending(file);
  bool is_expected = ending.empty();
  const char* what = "";
  const bool has_advice = !is_named_json(file) && !format_flag.empty();
  std::string other = has_advice ? fmt::format("; {} text takes it as one text", format_flag) : "";
  switch (content.kind) {
    case ContentKind::kJsonArray:
      what = "a JSON array of documents";
      is_expected = is_expected || ending == ".json";
      break;
    case ContentKind::kJsonLines:
      what = "JSON lines";
      is_expected = is_expected || is_named_json(file);
      break;
    case ContentKind::kParquet:
      what = "a Parquet table";
      other = "";
      is_expected = is_expected || ending == ".parquet";
      break;
    default: return "";
  }
  return is_expected ? "" : fmt::format("{} holds {}, and is read as such{}", name_of_input(file), what, other);
}

Content content_of_file(const std::filesystem::path& file) {
  DecompressingReader reader(file);
  return recognise_content(reader.peek(kContentHead), file);
}

}  // namespace teratron
