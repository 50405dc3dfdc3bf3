// JSON in a text that begins with "{" or "[".

#include "data/text/content_kinds.h"
#include "data/text/input_files.h"
#include "data/text/json_scanner.h"

namespace teratron::content {
namespace {

// Whether a text begins like an object's first member, in JSON or as Python prints it: {"key": or {'key':
bool begins_like_member(std::string_view text) {
  if (!text.starts_with('{')) return false;
  text = without_leading_space(text.substr(1));
  if (!text.starts_with('"') && !text.starts_with('\'')) return false;
  const std::size_t end = text.find(text.front(), 1);
  if (end == text.npos || text.substr(0, end).find('\n') != text.npos) return false;
  return without_leading_space(text.substr(end + 1)).starts_with(':');
}

Content kind(ContentKind found) { return {.kind = found}; }

Content unclear(bool is_named) {
  if (is_named) return kind(ContentKind::kJsonLines);  // its reader reports the fault with the line
  return {.kind = ContentKind::kOther,
          .refusal =
              "begins as JSON does, and is not valid JSON there; write an object a line (quotes are \", and NaN is no "
              "number)",
          .is_unclear = true};
}

// SQuAD's files are one object, whose "data" is a list of articles.
bool is_squad(std::string_view object) {
  return object.find("\"data\"") != object.npos && object.find("\"paragraphs\"") != object.npos &&
         object.find("\"qas\"") != object.npos;
}

std::optional<Content> find_object(std::string_view text, bool is_all, bool is_named) {
  JsonScanner scanner;
  const std::size_t read = scanner.scan(text);
  if (scanner.keys() > 0 && is_squad(text)) {
    return refused({"SQuAD's JSON", "'teratron finetune' and 'teratron eval' with squad1 or squad2 read it"});
  }
  const bool is_cut = !scanner.is_complete() && !scanner.is_invalid();
  if (scanner.is_invalid() || (is_cut && is_all)) {
    if (begins_like_member(text)) return unclear(is_named);
    return std::nullopt;
  }
  if (text.substr(0, read).find('\n') == text.npos) {
    if (is_cut) return kind(ContentKind::kJsonLines);  // a long first line
    const std::string_view rest = text.substr(read), line = rest.substr(0, rest.find('\n'));
    if (without_leading_space(line).empty()) return kind(ContentKind::kJsonLines);
    if (begins_like_member(text)) return unclear(is_named);
    return std::nullopt;
  }
  const std::string_view rest = without_leading_space(text.substr(read));
  if (scanner.keys() == 0 || (!rest.empty() && !rest.starts_with('{'))) return std::nullopt;
  return refused({"JSON whose objects have several lines each",
                  "bring each document into a line of its own, for example with jq -c ."});
}

std::optional<Content> find_array(std::string_view text, bool is_all, bool is_named) {
  JsonScanner scanner;
  const std::size_t read = scanner.scan(text);
  const std::string_view first = without_leading_space(text.substr(1));
  const bool has_objects = first.starts_with('{');
  const std::string_view rest = without_leading_space(text.substr(read));
  const bool is_whole = scanner.is_complete() && (rest.empty() || rest.starts_with('['));  // or several, joined
  const bool goes_on = !scanner.is_complete() && !scanner.is_invalid() && !is_all;
  if (has_objects) {
    if ((is_whole || goes_on) && scanner.keys() > 0) return kind(ContentKind::kJsonArray);
    const bool is_cut = !scanner.is_complete() && !scanner.is_invalid();
    if (is_named && (is_cut || begins_like_member(first)))
      return kind(ContentKind::kJsonArray);  // its reader reports the fault
    if (begins_like_member(first)) return unclear(false);
    return std::nullopt;
  }
  const bool is_empty = first.starts_with(']');
  if (is_empty && is_named) return kind(ContentKind::kJsonArray);
  const bool has_texts = first.starts_with('"') || first.starts_with('[');
  if (is_empty || (!is_whole && !(goes_on && has_texts)) || (!rest.empty() && !has_texts)) return std::nullopt;
  return refused({"JSON arrays of something else than objects",
                  "make an object of each document, in a line of its own: {\"text\": \"...\"}"});
}

}  // namespace

std::optional<Content> find_json(std::string_view text, bool is_all, bool is_named) {
  return text.starts_with('{') ? find_object(text, is_all, is_named) : find_array(text, is_all, is_named);
}

}  // namespace teratron::content
