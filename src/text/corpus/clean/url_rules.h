// The OpenWebText rules about where a document comes from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "corpus/stream/stage.h"

namespace teratron {

// What a URL is made of, in small letters where case means nothing.
struct UrlParts {
  std::string host;  // without "www." and a port
  std::string path;  // with its query, as written; never empty
};

// An address of the web: http or https (any case), a host with a dot of letters, digits, '-' and '.', no white space or
// control characters, 2,000 bytes at most. Nothing where it is malformed.
std::optional<UrlParts> parse_url(std::string_view url);

// Equal for addresses of one page: scheme, "www.", case of the host, a fragment and a last slash make no difference.
std::string page_key(const UrlParts& url);

class UrlRules {
 public:
  // `folder` holds domains.txt and extensions.txt: an entry a line, '#' begins a comment. UserError: one is missing, or
  // an entry is not a domain or an ending.
  explicit UrlRules(const std::filesystem::path& folder);

  // "malformed url", "domain" or "extension", with what was found; nothing where the URL may stay.
  std::optional<Drop> judge(std::string_view url) const;

 private:
  std::unordered_set<std::string> domains_, extensions_;
};

// The lists that come with the program: beside it where it was installed, in the source tree of a build. Empty where
// there are none.
std::filesystem::path installed_url_lists();

}  // namespace teratron
