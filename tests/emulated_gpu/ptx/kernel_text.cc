#include "emulated_gpu/ptx/kernel_text.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace teratron::emulated::ptx {
namespace {

std::size_t number_at(std::string_view text) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

int lines_in(std::string_view text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

std::map<std::string, SharedVariable, std::less<>> shared_of(std::string_view text) {
  std::map<std::string, SharedVariable, std::less<>> all;
  for (std::size_t at = text.find(".shared .align"); at != std::string_view::npos;
       at = text.find(".shared .align", at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1;
    if (std::isspace(static_cast<unsigned char>(text[line])) != 0) continue;  // of a kernel
    const Declaration declared = declaration_of(text.substr(at, text.find(';', at) - at));
    all[declared.name] = {declared.bytes, declared.alignment, !declared.has_size};
  }
  return all;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::size_t bytes_of_type(std::string_view type) {
  if (type == ".pred") return 4;
  if (type.size() < 3 || type[0] != '.' || std::string_view("busf").find(type[1]) == std::string_view::npos) return 0;
  return number_at(type.substr(2)) / 8;
}

Declaration declaration_of(std::string_view text) {
  Declaration result;
  std::size_t element = 0;
  const std::vector<std::string_view> words = words_of(text);
  bool aligned = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == ".align") {
      result.alignment = number_at(words.at(++i));
      aligned = true;
    } else if (words[i].front() != '.') {
      result.name = words[i];
    } else if (const std::size_t bytes = bytes_of_type(words[i]); bytes > 0) {
      element = bytes;
    }
  }
  check(element > 0 && !result.name.empty(), fmt::format("a declaration in PTX has a type and a name: {}", text));
  if (!aligned) result.alignment = element;
  std::size_t count = 1;
  if (const std::size_t bracket = result.name.find('['); bracket != std::string::npos) {
    count = number_at(std::string_view(result.name).substr(bracket + 1));
    result.has_size = result.name.at(bracket + 1) != ']';
    result.name.resize(bracket);
  }
  result.bytes = result.has_size ? element * count : 0;
  return result;
}

std::vector<Statement> statements_of(std::string_view body, int first_line) {
  std::vector<Statement> statements;
  int line = first_line;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] == '\n') ++line;
    if (kBlanks.find(body[at]) != std::string_view::npos || body[at] == '{' || body[at] == '}') {
      ++at;
      continue;
    }
    if (body.substr(at, 2) == "//") {
      at = std::min(body.find('\n', at), body.size());
      continue;
    }
    const bool is_label = body[at] == '$';
    const std::size_t end = std::min(body.find(is_label ? ':' : ';', at), body.size());
    const std::string_view text = body.substr(at, end - at);
    statements.push_back({line, trimmed(text), is_label});
    line += lines_in(text);
    at = end + 1;
  }
  return statements;
}

std::vector<KernelText> kernels_of(std::string_view text, const std::string& file) {
  constexpr std::string_view kEntry = ".entry ";
  const auto shared = shared_of(text);
  std::vector<KernelText> kernels;
  int line = 1;
  std::size_t counted = 0;
  for (std::size_t at = text.find(kEntry); at != std::string_view::npos; at = text.find(kEntry, at)) {
    const std::size_t name = at + kEntry.size(), open = text.find('(', name), close = text.find(')', open);
    const std::size_t begin = text.find('{', close);
    const std::size_t end = std::min(text.find("\n}", begin), text.size());
    check(begin != std::string_view::npos, fmt::format("{}: a kernel has parameters and a body", file));
    line += lines_in(text.substr(counted, begin - counted));
    counted = begin;
    KernelText kernel{.file = file,
                      .name = std::string(trimmed(text.substr(name, open - name))),
                      .parameters = std::string(text.substr(open + 1, close - open - 1)),
                      .directives = std::string(text.substr(close + 1, begin - close - 1)),
                      .body = std::string(text.substr(begin + 1, end - begin - 1)),
                      .line = line,
                      .shared = shared};
    kernels.push_back(std::move(kernel));
    at = end;
  }
  return kernels;
}

std::string common_name(std::string_view mangled) {
  constexpr std::string_view kNested = "_ZN", kUnnamed = "_GLOBAL__N";
  if (!mangled.starts_with(kNested)) return std::string(mangled);
  for (std::size_t at = kNested.size(); at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at]));) {
    const std::size_t length = number_at(mangled.substr(at));
    const std::size_t begin = mangled.find_first_not_of("0123456789", at);
    if (begin == std::string_view::npos || begin + length > mangled.size()) break;
    if (mangled.substr(begin).starts_with(kUnnamed)) {
      return std::string(mangled.substr(0, at)) + std::string(mangled.substr(begin + length));
    }
    at = begin + length;
  }
  return std::string(mangled);
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace teratron::emulated::ptx
