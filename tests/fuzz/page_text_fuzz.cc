// A page's bytes in an encoding, and the repair of its text; the first line names the encoding.
#include <algorithm>

#include "corpus/clean/html_entities.h"
#include "corpus/clean/text_repair.h"
#include "corpus/clean/url_rules.h"
#include "corpus/extract/body_kind.h"
#include "corpus/extract/charset.h"
#include "corpus/extract/find_encoding.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const std::size_t line_end = std::min(input.find('\n'), input.size());
  const std::string_view label = input.substr(0, line_end), page = input.substr(std::min(line_end + 1, input.size()));
  if (const auto url = parse_url(label)) page_key(*url);
  const std::string text = to_utf8(page, find_encoding(page, label));
  const std::string repaired = repair_text(text);
  require(repair_text(repaired).size() <= 4 * (repaired.size() + 16), "repair does not swell a text");
  unescape_html(text);
  remove_needless_newlines(repaired);
  is_garbage(text);
  is_program(text);
  is_encoded_data(text);
  file_format_of(page);
}
