#include "data/text/array_elements.h"

#include "base/error.h"
#include "data/text/content.h"
#include "data/text/input_files.h"

namespace teratron {

std::size_t ArrayElements::scan(std::string& text, bool is_last,
                                const std::function<void(std::size_t begin, std::size_t end)>& element) {
  std::size_t begin = 0, at = scanned_;
  while (at < text.size()) {
    if (!is_open_) {
      at = begin = open_array(text, is_last, at);
      if (!is_open_) break;
      continue;
    }
    if (in_string_) {
      at = skip_string(text, at);
      continue;
    }
    char& c = text[at];
    const bool is_end = depth_ == 0 && (c == ',' || c == ']');
    if (is_end) {
      const bool is_empty = is_blank(std::string_view(text).substr(begin, at - begin));
      if (!is_empty || has_comma_ || c == ',') element(begin, at);
      has_comma_ = c == ',';
      is_open_ = c == ',';
      begin = at + 1;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      depth_ -= depth_ > 0 ? 1 : 0;
    } else if (c == '\n' || c == '\r') {
      c = ' ';
    }
    ++at;
  }
  scanned_ = is_open_ ? text.size() - begin : 0;
  return begin;
}

// The offset of the first element; otherwise of a possible beginning of a byte order mark, or the text's end.
std::size_t ArrayElements::open_array(std::string_view text, bool is_last, std::size_t at) {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kByteOrderMark)) {
      at += kByteOrderMark.size();
    } else if (!is_last && kByteOrderMark.starts_with(rest)) {
      break;
    } else if (is_blank(rest.substr(0, 1))) {
      ++at;
    } else if (rest.front() == '[') {
      is_open_ = true;
      return at + 1;
    } else {
      throw_user_error(
          "text follows the end of its JSON array, and it is no other array; write a document a line, or one "
          "array");
    }
  }
  return at;
}

// The offset after the closing quote, or the text's end.
std::size_t ArrayElements::skip_string(std::string_view text, std::size_t at) {
  for (; at < text.size(); ++at) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (text[at] == '\\') {
      is_escaped_ = true;
    } else if (text[at] == '"') {
      in_string_ = false;
      return at + 1;
    }
  }
  return at;
}

}  // namespace teratron
