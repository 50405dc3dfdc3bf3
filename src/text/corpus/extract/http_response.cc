#include "corpus/extract/http_response.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/ascii.h"
#include "corpus/extract/header_lines.h"

namespace teratron {
namespace {

// "HTTP/1.1 200 OK"
std::optional<int> status_of(std::string_view line) {
  if (!line.starts_with("HTTP/")) return std::nullopt;
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view digits = without_ascii_spaces(line.substr(space)).substr(0, 3);
  int status = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), status);
  if (error != std::errc() || end != digits.data() + 3) return std::nullopt;
  return status;
}

void read_content_type(std::string_view value, HttpHead& head) {
  const std::string small = ascii_lower(value);
  std::string_view rest = small;
  const std::string_view first = rest.substr(0, rest.find(','));  // of several, joined by a proxy
  head.media_type = without_ascii_spaces(first.substr(0, first.find(';')));
  while (rest.find(';') != rest.npos) {
    rest.remove_prefix(rest.find(';') + 1);
    std::string_view parameter = without_ascii_spaces(rest.substr(0, rest.find(';')));
    if (!parameter.starts_with("charset")) continue;
    parameter = without_ascii_spaces(parameter.substr(7));
    if (!parameter.starts_with('=')) continue;
    parameter = without_ascii_spaces(parameter.substr(1));
    while (!parameter.empty() && (parameter.front() == '"' || parameter.front() == '\'')) parameter.remove_prefix(1);
    while (!parameter.empty() && (parameter.back() == '"' || parameter.back() == '\'')) parameter.remove_suffix(1);
    head.charset = parameter;
    return;
  }
}

// The names in a list, in lower case, without "identity".
std::vector<std::string> names_in(std::string_view value) {
  const std::string small = ascii_lower(value);
  std::vector<std::string> names;
  for (std::string_view rest = small; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view one = without_ascii_spaces(rest.substr(0, comma));
    if (!one.empty() && one != "identity") names.emplace_back(one);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

bool is_html(std::string_view media_type) { return media_type == "text/html" || media_type == "application/xhtml+xml"; }

bool is_no_type(std::string_view media_type) {
  return media_type.empty() || media_type == "application/octet-stream" || media_type == "unknown/unknown" ||
         media_type == "*/*";
}

}  // namespace

bool HttpHead::says_nothing() const { return is_no_type(media_type) && is_no_type(seen_type); }

bool HttpHead::is_page() const {
  return status == 200 && (says_nothing() || is_html(is_no_type(media_type) ? seen_type : media_type));
}

std::optional<HttpHead> parse_http_head(std::string_view response) {
  HeaderLines lines(response.substr(0, kLongestHttpHead));
  const std::optional<std::string_view> first = lines.next();
  const std::optional<int> status = first ? status_of(*first) : std::nullopt;
  if (!status) return std::nullopt;
  HttpHead head;
  head.status = *status;
  std::vector<std::string> transfer;
  while (const std::optional<std::string_view> line = lines.next()) {
    if (line->empty()) {
      head.bytes = lines.bytes_read();
      head.is_chunked = std::erase(transfer, "chunked") > 0;
      head.encodings.insert(head.encodings.end(), transfer.begin(), transfer.end());
      return head;
    }
    const HeaderField field = header_field(*line);
    if (equals_ignoring_case(field.name, "content-type")) read_content_type(field.value, head);
    if (equals_ignoring_case(field.name, kSeenTypeField)) head.seen_type = ascii_lower(field.value);
    if (equals_ignoring_case(field.name, "content-encoding"))
      std::ranges::move(names_in(field.value), std::back_inserter(head.encodings));
    if (equals_ignoring_case(field.name, "transfer-encoding"))
      std::ranges::move(names_in(field.value), std::back_inserter(transfer));
  }
  return std::nullopt;
}

std::string as_http_response(std::string_view page, bool is_utf8) {
  for (std::optional<HttpHead> head = parse_http_head(page); head; head = parse_http_head(page)) {
    const std::string_view body = page.substr(head->bytes);
    if (!body.starts_with("HTTP/")) return std::string(page);
    page = body;  // a redirection's
  }
  std::string response = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
  response += is_utf8 ? "; charset=utf-8\r\n\r\n" : "\r\n\r\n";
  return response += page;
}

}  // namespace teratron
