#include "corpus/clean/url_rules.h"

#include <algorithm>
#include <system_error>

#include "base/ascii.h"
#include "base/error.h"
#include "base/files/file.h"
#include "data/text/content.h"
#include "data/text/text_list.h"

namespace teratron {
namespace {

constexpr std::size_t kLongestUrl = 2000;

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_host(std::string_view host) {
  const std::size_t dot = host.find('.');
  return dot != host.npos && dot > 0 && !host.ends_with('.') && host.find("..") == host.npos &&
         std::ranges::all_of(host, is_host_letter);
}

constexpr std::string_view kWeb = "www.";

// Hosts are compared without "www.".
std::string without_web(std::string host) {
  if (host.starts_with(kWeb) && is_host(std::string_view(host).substr(kWeb.size()))) host.erase(0, kWeb.size());
  return host;
}

enum class Entries { kDomains, kEndings };

std::unordered_set<std::string> read_list(const std::filesystem::path& file, Entries kind) {
  std::unordered_set<std::string> entries;
  const std::string content = read_file(file);
  std::int64_t line_number = 0;
  for (std::string_view line : lines_of(without_byte_order_mark(content))) {
    ++line_number;
    line = line.substr(0, line.find('#'));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) continue;
    if (!std::ranges::all_of(ascii_lower(line), is_host_letter) || line.starts_with('.')) {
      throw_user_error("{}:{}: '{}' is neither a domain (example.org) nor an ending (jpg)", file.string(), line_number,
                       line);
    }
    if (kind == Entries::kEndings && line.find('.') != line.npos) {
      throw_user_error("{}:{}: '{}' has a dot, and an ending is what follows the last one: {}", file.string(),
                       line_number, line, line.substr(line.rfind('.') + 1));
    }
    entries.insert(kind == Entries::kDomains ? without_web(ascii_lower(line)) : ascii_lower(line));
  }
  return entries;
}

// "jpg" for "/a/b.JPG?size=1"; empty if there is no ending.
std::string extension_of(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? "" : ascii_lower(name.substr(dot + 1));
}

}  // namespace

std::optional<UrlParts> parse_url(std::string_view url) {
  const bool is_readable = url.size() <= kLongestUrl && std::ranges::none_of(url, [](char c) {
                             return static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) == 0x7F;
                           });
  const std::size_t scheme_end = url.find("://");
  if (!is_readable || scheme_end == url.npos) return std::nullopt;
  const std::string scheme = ascii_lower(url.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  std::string_view rest = url.substr(scheme_end + 3);
  const std::size_t path_begin = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, path_begin);
  authority.remove_prefix(authority.rfind('@') + 1);  // 0 if there is no "@"
  const std::size_t colon = authority.find(':');
  std::string_view port = colon == authority.npos ? "" : authority.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != port.npos) return std::nullopt;
  port.remove_prefix(std::min(port.find_first_not_of('0'), port.size()));
  if (port == (scheme == "http" ? "80" : "443")) port = "";
  UrlParts parts{.host = ascii_lower(authority.substr(0, colon)),
                 .port = std::string(port),
                 .path = std::string(rest.substr(path_begin))};
  if (!is_host(parts.host)) return std::nullopt;
  parts.host = without_web(std::move(parts.host));
  if (!parts.path.starts_with('/')) parts.path.insert(0, "/");
  return parts;
}

std::string page_key(const UrlParts& url) {
  std::string key = url.host + (url.port.empty() ? "" : ":" + url.port) + url.path.substr(0, url.path.find('#'));
  while (key.ends_with('/')) key.pop_back();
  return key;
}

UrlRules::UrlRules(const std::filesystem::path& folder)
    : domains_(read_list(folder / "domains.txt", Entries::kDomains)),
      extensions_(read_list(folder / "extensions.txt", Entries::kEndings)) {}

std::optional<Drop> UrlRules::judge(std::string_view url) const {
  const std::optional<UrlParts> parts = parse_url(url);
  if (!parts) return Drop{"malformed url", std::string(url.substr(0, 200))};
  for (std::string_view domain = parts->host; !domain.empty();) {
    if (domains_.contains(std::string(domain))) return Drop{"domain", std::string(domain)};
    const std::size_t dot = domain.find('.');
    domain = dot == domain.npos ? "" : domain.substr(dot + 1);
  }
  std::string extension = extension_of(parts->path);
  if (extensions_.contains(extension)) return Drop{"extension", std::move(extension)};
  return std::nullopt;
}

std::filesystem::path installed_url_lists() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* relative : {"../share/teratron/configs/url-lists", "../../configs/url-lists"}) {
    const std::filesystem::path folder = program / relative;
    if (!error && std::filesystem::is_regular_file(folder / "domains.txt", error)) return folder;
    error.clear();
  }
  return {};
}

}  // namespace teratron
