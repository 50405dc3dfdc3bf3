#include "corpus/extract/http_response.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "corpus/extract/ascii.h"
#include "corpus/extract/header_lines.h"
#include "corpus/extract/http_compression.h"

namespace teratron {
namespace {

// "HTTP/1.1 200 OK"
std::optional<int> status_of(std::string_view line) {
  if (!line.starts_with("HTTP/")) return std::nullopt;
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view digits = without_spaces(line.substr(space)).substr(0, 3);
  int status = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), status);
  if (error != std::errc() || end != digits.data() + 3) return std::nullopt;
  return status;
}

void read_content_type(std::string_view value, HttpHead& head) {
  const std::string small = ascii_lower(value);
  std::string_view rest = small;
  head.media_type = without_spaces(rest.substr(0, rest.find(';')));
  while (rest.find(';') != rest.npos) {
    rest.remove_prefix(rest.find(';') + 1);
    std::string_view parameter = without_spaces(rest.substr(0, rest.find(';')));
    if (!parameter.starts_with("charset")) continue;
    parameter = without_spaces(parameter.substr(7));
    if (!parameter.starts_with('=')) continue;
    parameter = without_spaces(parameter.substr(1));
    while (!parameter.empty() && (parameter.front() == '"' || parameter.front() == '\'')) parameter.remove_prefix(1);
    while (!parameter.empty() && (parameter.back() == '"' || parameter.back() == '\'')) parameter.remove_suffix(1);
    head.charset = parameter;
    return;
  }
}

void read_encodings(std::string_view value, HttpHead& head) {
  const std::string small = ascii_lower(value);
  for (std::string_view rest = small; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view one = without_spaces(rest.substr(0, comma));
    if (!one.empty() && one != "identity") head.encodings.emplace_back(one);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

HttpBody without_chunks(std::string_view body, std::size_t most) {
  HttpBody out;
  while (true) {
    const std::size_t line_end = body.find('\n');
    if (line_end == body.npos) return bad_http("the body ends where a chunk's size should be");
    const std::string_view line = without_spaces(body.substr(0, std::min(line_end, body.find(';'))));
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (line.empty() || error != std::errc() || end != line.data() + line.size()) {
      return bad_http("a chunk's size is no number");
    }
    body.remove_prefix(line_end + 1);
    if (size == 0) return out;
    if (size > body.size()) return bad_http("the body ends inside a chunk");
    if (out.bytes.size() + size > most) return too_large(most);
    out.bytes += body.substr(0, size);
    body.remove_prefix(size);
    if (body.starts_with("\r\n")) {
      body.remove_prefix(2);
    } else if (body.starts_with('\n')) {
      body.remove_prefix(1);
    } else {
      return bad_http("a chunk is longer than its size says");
    }
  }
}

}  // namespace

std::optional<HttpHead> parse_http_head(std::string_view response) {
  HeaderLines lines(response.substr(0, kLongestHttpHead));
  const std::optional<std::string_view> first = lines.next();
  const std::optional<int> status = first ? status_of(*first) : std::nullopt;
  if (!status) return std::nullopt;
  HttpHead head{.status = *status};
  while (const std::optional<std::string_view> line = lines.next()) {
    if (line->empty()) {
      head.bytes = lines.bytes_read();
      return head;
    }
    const HeaderField field = header_field(*line);
    if (equals_ignoring_case(field.name, "content-type")) read_content_type(field.value, head);
    if (equals_ignoring_case(field.name, "content-encoding")) read_encodings(field.value, head);
    if (equals_ignoring_case(field.name, "transfer-encoding")) {
      head.is_chunked = ascii_lower(field.value).find("chunked") != std::string::npos;
    }
  }
  return std::nullopt;
}

HttpBody decode_http_body(const HttpHead& head, std::string_view body, std::size_t most_bytes) {
  HttpBody decoded{.bytes = std::string(body)};
  if (head.is_chunked) decoded = without_chunks(body, most_bytes);
  for (std::size_t i = head.encodings.size(); i > 0 && decoded.reason.empty(); --i) {
    decoded = decompress_body(decoded.bytes, head.encodings[i - 1], most_bytes);
  }
  if (decoded.reason.empty() && decoded.bytes.size() > most_bytes) return too_large(most_bytes);
  return decoded;
}

std::string as_http_response(std::string_view page, bool is_utf8) {
  std::string response = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
  response += is_utf8 ? "; charset=utf-8\r\n\r\n" : "\r\n\r\n";
  return response += page;
}

}  // namespace teratron
