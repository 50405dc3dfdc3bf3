// The OpenWebText rules about the source of a document.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "corpus/stream/stage.h"

namespace teratron {

// The parts of a URL, in lower case where case means nothing.
struct UrlParts {
  std::string host;  // without "www.", unless nothing with a dot is left
  std::string port;  // empty: the scheme's
  std::string path;  // with its query, as written; never empty
};

// Parses an address of the web: http or https (any case), a host with a dot of letters, digits, '-' and '.', no white
// space or control characters, at most 2,000 bytes. Empty if it is malformed.
std::optional<UrlParts> parse_url(std::string_view url);

// A key that is equal for addresses of one page: scheme, user name, "www.", case of the host, the scheme's own port,
// fragment and last slash are ignored.
std::string page_key(const UrlParts& url);

class UrlRules {
 public:
  // `folder` holds domains.txt and extensions.txt: an entry a line, '#' begins a comment, and "www." of a domain is
  // ignored as that of an address. UserError: a file is missing, or an entry is no domain or ending, or an ending with
  // a dot, which no address has.
  explicit UrlRules(const std::filesystem::path& folder);

  // "malformed url", "domain" or "extension", with the part that was found; empty if the URL may stay.
  std::optional<Drop> judge(std::string_view url) const;

 private:
  std::unordered_set<std::string> domains_, extensions_;
};

// The lists that come with the program, short ones of ours: beside it if it was installed, in configs/url-lists of the
// source tree for a build. Empty if there are none.
std::filesystem::path installed_url_lists();

}  // namespace teratron
