#include "corpus/extract/find_encoding.h"

#include <uchardet/uchardet.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/utf8.h"
#include "corpus/extract/body_kind.h"
#include "corpus/extract/charset.h"
#include "corpus/langid/langid_stage.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

constexpr std::size_t kLongestMetaTag = 1024;
constexpr std::size_t kSampleBytes = std::size_t{16} << 10;  // of a page's text, which are judged
constexpr std::int64_t kEnoughHighBytes = 4;                 // fewer do not show an encoding

// The value, in lower case, after `name` and "=" in `text`: of an attribute or a parameter; empty if there is none.
std::string value_of(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    if (at > 0 && (is_ascii_letter(text[at - 1]) || text[at - 1] == '-')) continue;
    std::string_view rest = without_ascii_spaces(text.substr(at + name.size()));
    if (!rest.starts_with('=')) continue;
    rest = without_ascii_spaces(rest.substr(1));
    if (rest.starts_with('"') || rest.starts_with('\'')) return std::string(rest.substr(1, rest.find(rest[0], 1) - 1));
    return std::string(rest.substr(0, rest.find_first_of(" \t\r\n\f;\"'/>")));
  }
  return {};
}

// The encoding that an XML declaration or a <meta> names, if the page's markup is in ASCII bytes.
std::string_view declared_encoding(std::string_view page) {
  const auto named_in_tag = [&](std::size_t at, std::string_view attribute) {
    const std::string_view tag = page.substr(at, kLongestMetaTag);
    return encoding_of_label(value_of(ascii_lower(tag.substr(0, tag.find('>'))), attribute));
  };
  if (begins_ignoring_case(page, "<?xml")) {
    if (const std::string_view named = named_in_tag(0, "encoding"); !named.empty()) return named;
  }
  for (std::size_t at = page.find('<'); at != page.npos; at = page.find('<', at + 1)) {
    if (page.substr(at).starts_with("<!--")) {
      at = std::min(page.find("-->", at + 2), page.size() - 1);
    } else if (begins_ignoring_case(page.substr(at), "<meta")) {
      if (const std::string_view named = named_in_tag(at, "charset"); !named.empty()) return named;
    }
  }
  return {};
}

std::string_view encoding_by_mark(std::string_view page) {
  if (page.starts_with("\xEF\xBB\xBF")) return "utf-8";
  if (page.starts_with("\xFE\xFF")) return "utf-16be";
  if (page.starts_with("\xFF\xFE")) return "utf-16le";
  return {};
}

// Counts characters of several bytes, and bytes in no character, if the page is read as UTF-8.
struct Utf8Share {
  std::int64_t characters = 0, errors = 0;
};
Utf8Share utf8_share(std::string_view page) {
  Utf8Share share;
  while (!page.empty()) {
    const auto* const high = std::ranges::find_if(page, [](char c) { return static_cast<signed char>(c) < 0; });
    page.remove_prefix(static_cast<std::size_t>(high - page.begin()));
    if (page.empty()) break;
    const Utf8Step step = decode_utf8(page);
    const bool is_cut_off = step.status == Utf8Status::kUnfinished && share.characters > 0;
    if (step.status != Utf8Status::kValid && !is_cut_off) ++share.errors;
    if (step.status == Utf8Status::kValid && step.length > 1) ++share.characters;
    page.remove_prefix(step.length);
  }
  return share;
}

// Up to kSampleBytes of the page's text, without tags, scripts and styles, and without lines that are ASCII alone,
// which show nothing. For encodings in which "<" and ">" are ASCII.
std::string sample_of_text(std::string_view page) {
  std::string sample;
  for (std::size_t at = 0; at < page.size() && sample.size() < kSampleBytes;) {
    const std::size_t tag = std::min(page.find('<', at), page.size());
    std::string_view text = page.substr(at, std::min(tag - at, kSampleBytes));
    if (std::ranges::any_of(text, [](char c) { return static_cast<signed char>(c) < 0; })) {
      sample += text;
      sample += ' ';
    }
    const std::string_view rest = page.substr(tag);
    const bool holds_no_text = begins_ignoring_case(rest, "<script") || begins_ignoring_case(rest, "<style");
    const std::size_t end = rest.find(holds_no_text ? "</" : rest.starts_with("<!--") ? "-->" : ">", 1);
    if (end == rest.npos) break;
    at = tag + end + 1;
  }
  return sample;
}

// uchardet's guess; empty if it has none, or none of our encodings.
std::string_view detect_encoding(std::string_view text) {
  const std::unique_ptr<std::remove_pointer_t<uchardet_t>, void (*)(uchardet_t)> detector(::uchardet_new(),
                                                                                          ::uchardet_delete);
  if (!detector || ::uchardet_handle_data(detector.get(), text.data(), text.size()) != 0) throw std::bad_alloc();
  ::uchardet_data_end(detector.get());
  const std::string name = ascii_lower(::uchardet_get_charset(detector.get()));
  if (name == "uhc") return "euc-kr";
  if (name == "iso-8859-16") return "windows-1250";  // Romanian; no pages are in the former
  if (name == "mac-cyrillic") return "x-mac-cyrillic";
  if (name == "koi8-r") return "koi8-u";  // koi8-r with the letters of Ukrainian in place of box lines
  return encoding_of_label(name);
}

// Errors of reading a text in an encoding: bytes that are no characters, and for ISO 8859 control characters, which
// pages do not mean.
std::int64_t errors_of(std::string_view text, std::string_view encoding) {
  std::int64_t errors = 0;
  to_utf8(text, encoding, &errors);
  if (!encoding.starts_with("iso-8859-")) return errors;
  return errors + std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xE0) == 0x80; });
}

// A candidate encoding.
struct Reading {
  std::string_view encoding;
  std::int64_t errors = 0;
  DetectedLanguage language;
};

Reading read_as(std::string_view encoding, std::string_view sample) {
  return {.encoding = encoding,
          .errors = errors_of(sample, encoding),
          .language = detect_language(to_utf8(sample, encoding))};
}

// CLD2's scores compare within one language only. If it is sure of two languages, one of them is wrong bytes for a
// detector that saw the other encoding.
bool reads_better(const Reading& one, const Reading& other) {
  if (one.errors > other.errors || !one.language.is_reliable) return false;
  if (one.errors < other.errors || !other.language.is_reliable) return true;
  return one.language.code != other.language.code || one.language.score > other.language.score;
}

std::string_view choose_encoding(const std::vector<std::string_view>& declared, std::string_view page) {
  const std::string sample = sample_of_text(page);
  const auto high = std::ranges::count_if(sample, [](char c) { return static_cast<signed char>(c) < 0; });
  const std::string_view detected = high < kEnoughHighBytes ? "" : detect_encoding(sample);
  std::vector<std::string_view> candidates;
  for (const std::string_view one : declared) {
    if (errors_of(sample, one) * 100 <= high) candidates.push_back(one);
  }
  if (!detected.empty() && detected != "utf-8") candidates.push_back(detected);
  if (candidates.empty()) return declared.empty() ? "windows-1252" : declared.front();
  const auto differs = [&](std::string_view one) { return one != candidates.front(); };
  if (high < kEnoughHighBytes || std::ranges::none_of(candidates, differs)) return candidates.front();
  Reading best = read_as(candidates.front(), sample);
  for (const std::string_view one : candidates) {
    if (one == best.encoding) continue;
    if (Reading other = read_as(one, sample); reads_better(other, best)) best = std::move(other);
  }
  return best.encoding;
}

bool is_letter_at(std::string_view text, std::size_t at) {
  return at < text.size() && class_of(decode_utf8(text.substr(at)).code) == CharClass::kLetter;
}

// Letters that a language does not have, and that result from its own letters in the other encoding.
std::u32string_view foreign_letters(std::string_view language) {
  constexpr auto kForeign = std::to_array<std::pair<std::string_view, std::u32string_view>>(
      {{"hu", U"\u00F5\u00FB\u00D5\u00DB"},  // o and u with tilde and circumflex, instead of two acutes
       {"cs", U"\u0105\u013E\u013D"},        // Polish and Slovak letters, instead of s and z with caron
       {"sk", U"\u0105"},
       {"sl", U"\u0105\u013E\u013D"},
       {"hr", U"\u0105\u013E\u013D"},
       {"bs", U"\u0105\u013E\u013D"},
       {"pl", U"\u013E\u013D"}});
  const auto* found = std::ranges::find(kForeign, language, [](const auto& one) { return one.first; });
  return found == kForeign.end() ? std::u32string_view() : found->second;
}

// Signs in place of letters: control characters, signs beside or between letters, letters of other languages.
std::int64_t count_odd_signs(std::string_view text, std::string_view language) {
  const std::u32string_view foreign = foreign_letters(language);
  std::int64_t odd = 0;
  bool is_behind_letter = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text.substr(at));
    const std::size_t next = at + step.length;
    const bool is_before_letter = is_letter_at(text, next);
    constexpr std::u32string_view kBeside = U"\u00A1\u00A6\u00AC\u00B1\u00B6\u02C7",
                                  kBetween = U"\u00A9\u00AB\u00AE\u00BB";
    if ((step.code >= 0x80 && step.code < 0xA0) || foreign.find(step.code) != foreign.npos) ++odd;
    if (kBeside.find(step.code) != kBeside.npos && (is_behind_letter || is_before_letter)) ++odd;
    if (kBetween.find(step.code) != kBetween.npos && is_behind_letter && is_before_letter) ++odd;
    is_behind_letter = is_letter_at(text, at);
    at = next;
  }
  return odd;
}

// Corrects pages of Central Europe, which name the region's two encodings for each other, or a Western one. `found`:
// the encoding found so far.
std::string_view central_european(std::string_view found, std::string_view page) {
  constexpr auto kTwins = std::to_array<std::string_view>({"windows-1250", "iso-8859-2"});
  const bool is_twin = std::ranges::find(kTwins, found) != kTwins.end();
  const bool is_western =
      found == "windows-1252" || found.starts_with("iso-8859-1") || found == "windows-1254" || found == "windows-1257";
  const std::string sample = sample_of_text(page);
  const auto high = std::ranges::count_if(sample, [](char c) { return static_cast<signed char>(c) < 0; });
  if ((!is_twin && !is_western) || high < kEnoughHighBytes) return found;
  struct Candidate {
    std::string_view encoding;
    std::int64_t odd;
    DetectedLanguage language;
  };
  const auto read = [&](std::string_view encoding) {
    const std::string text = to_utf8(sample, encoding);
    const DetectedLanguage language = detect_language(text);
    return Candidate{encoding, count_odd_signs(text, language.code), language};
  };
  // In Western languages neither twin reads better by its signs and its language.
  const auto is_better = [](const Candidate& one, const Candidate& other) {
    if (!one.language.is_reliable || one.odd > other.odd) return false;
    if (!other.language.is_reliable) return true;
    if (one.language.code != other.language.code) return false;
    return one.odd < other.odd || one.language.score > other.language.score;
  };
  Candidate best = read(found);
  for (const std::string_view twin : kTwins) {
    if (twin == found) continue;
    if (Candidate other = read(twin); is_better(other, best)) best = std::move(other);
  }
  return best.encoding;
}

}  // namespace

std::string_view find_encoding(std::string_view page, std::string_view transport) {
  if (const std::string_view marked = encoding_by_mark(page); !marked.empty()) return marked;
  if (const std::string_view wide = utf16_without_mark(page.substr(0, kSampleBytes)); !wide.empty()) return wide;
  if (page.find("\x1B$") != page.npos && is_utf8(page)) return "iso-2022-jp";
  const Utf8Share utf8 = utf8_share(page);
  if (utf8.characters > 0 && utf8.characters >= utf8.errors * 4) return "utf-8";
  std::vector<std::string_view> declared;
  bool says_utf8 = false;
  for (const std::string_view label : {encoding_of_label(transport), declared_encoding(page)}) {
    if (label == "utf-8") says_utf8 = true;
    if (!label.empty() && label != "utf-8" && !label.starts_with("utf-16")) declared.push_back(label);
  }
  if (utf8.errors == 0) return says_utf8 || declared.empty() ? "utf-8" : declared.front();  // ASCII
  if (says_utf8 && utf8.characters >= utf8.errors) return "utf-8";
  return central_european(choose_encoding(declared, page), page);
}

}  // namespace teratron
