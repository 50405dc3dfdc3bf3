#include "corpus/extract/charset.h"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/ascii.h"
#include "base/error.h"
#include "base/utf8.h"
#include "corpus/clean/windows_1252.h"

namespace teratron {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD", kEuro = "\xE2\x82\xAC";

struct KnownEncoding {
  std::string_view name, iconv_name, labels;  // separated by spaces
};

// The table of encoding.spec.whatwg.org. glibc's names differ where browsers read a superset of the labelled encoding.
constexpr auto kEncodings = std::to_array<KnownEncoding>({
    {"utf-8", "", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8"},
    {"ibm866", "CP866", "866 cp866 csibm866 ibm866"},
    {"iso-8859-2", "ISO-8859-2",
     "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2"},
    {"iso-8859-3", "ISO-8859-3",
     "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3"},
    {"iso-8859-4", "ISO-8859-4",
     "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4"},
    {"iso-8859-5", "ISO-8859-5",
     "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988"},
    {"iso-8859-6", "ISO-8859-6",
     "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i "
     "iso-ir-127 "
     "iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"},
    {"iso-8859-7", "ISO-8859-7",
     "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
     "iso_8859-7:1987 sun_eu_greek"},
    {"iso-8859-8", "ISO-8859-8",
     "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
     "iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical"},
    {"iso-8859-10", "ISO-8859-10", "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6"},
    {"iso-8859-13", "ISO-8859-13", "iso-8859-13 iso8859-13 iso885913"},
    {"iso-8859-14", "ISO-8859-14", "iso-8859-14 iso8859-14 iso885914"},
    {"iso-8859-15", "ISO-8859-15", "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9"},
    {"iso-8859-16", "ISO-8859-16", "iso-8859-16"},
    {"koi8-r", "KOI8-R", "cskoi8r koi koi8 koi8-r koi8_r"},
    {"koi8-u", "KOI8-U", "koi8-ru koi8-u"},
    {"macintosh", "MACINTOSH", "csmacintosh mac macintosh x-mac-roman"},
    {"windows-874", "CP874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874"},
    {"windows-1250", "CP1250", "cp1250 windows-1250 x-cp1250"},
    {"windows-1251", "CP1251", "cp1251 windows-1251 x-cp1251"},
    {"windows-1252", "",
     "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 "
     "iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 x-user-defined"},
    {"windows-1253", "CP1253", "cp1253 windows-1253 x-cp1253"},
    {"windows-1254", "CP1254",
     "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254 "
     "x-cp1254"},
    {"windows-1255", "CP1255", "cp1255 windows-1255 x-cp1255"},
    {"windows-1256", "CP1256", "cp1256 windows-1256 x-cp1256"},
    {"windows-1257", "CP1257", "cp1257 windows-1257 x-cp1257"},
    {"windows-1258", "CP1258", "cp1258 windows-1258 x-cp1258"},
    {"x-mac-cyrillic", "MAC-CYRILLIC", "x-mac-cyrillic x-mac-ukrainian"},
    {"gb18030", "GB18030", "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030"},
    {"big5", "BIG5-HKSCS", "big5 big5-hkscs cn-big5 csbig5 x-x-big5"},
    {"euc-jp", "EUC-JP-MS", "cseucpkdfmtjapanese euc-jp x-euc-jp"},
    {"iso-2022-jp", "ISO-2022-JP", "csiso2022jp iso-2022-jp"},
    {"shift_jis", "CP932", "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis"},
    {"euc-kr", "UHC",
     "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"},
    {"utf-16be", "UTF-16BE", "unicodefffe utf-16be"},
    {"utf-16le", "UTF-16LE", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le"},
});

bool has_label(std::string_view labels, std::string_view one) {
  for (std::size_t at = labels.find(one); at != labels.npos; at = labels.find(one, at + 1)) {
    const std::size_t end = at + one.size();
    if ((at == 0 || labels[at - 1] == ' ') && (end == labels.size() || labels[end] == ' ')) return true;
  }
  return false;
}

std::string from_windows_1252(std::string_view page) {
  std::string text;
  for (const char byte : page) append_utf8(windows_1252_character(static_cast<std::uint8_t>(byte)), text);
  return text;
}

std::string from_utf8(std::string_view page, std::int64_t& errors) {
  if (is_utf8(page)) return std::string(page);
  std::string text;
  while (!page.empty()) {
    const Utf8Step step = decode_utf8(page);
    text += step.status == Utf8Status::kValid ? page.substr(0, step.length) : kReplacement;
    errors += step.status == Utf8Status::kInvalid ? 1 : 0;
    page.remove_prefix(step.length);
  }
  return text;
}

std::string from_iconv(std::string_view page, const std::string& name, std::int64_t& errors) {
  const iconv_t converter = ::iconv_open("UTF-8", name.c_str());
  if (converter == std::bit_cast<iconv_t>(std::intptr_t{-1})) {  // as POSIX has it
    throw_environment_error(
        "a page is in the encoding {}, which iconv of this machine does not convert: {}; install its tables "
        "(glibc-gconv-extra on Fedora and RHEL) and run the same command again",
        name, std::strerror(errno));
  }
  const auto close = [](void* one) { ::iconv_close(static_cast<iconv_t>(one)); };
  const std::unique_ptr<void, decltype(close)> owner(converter, close);
  const std::size_t unit = name.starts_with("UTF-16") ? 2 : 1;
  std::string text;
  std::array<char, 16384> piece;
  char* from = const_cast<char*>(page.data());
  std::size_t left = page.size();
  while (left > 0) {
    char* to = piece.data();
    std::size_t room = piece.size();
    const std::size_t result = ::iconv(converter, &from, &left, &to, &room);
    text.append(piece.data(), piece.size() - room);
    if (result != static_cast<std::size_t>(-1) || errno == E2BIG) continue;
    if (errno == EINVAL) {  // the page ends inside a character
      text += kReplacement;
      break;
    }
    const bool is_euro = *from == '\x80' && name == "GB18030";  // Windows' code page 936 has it, and so do browsers
    text += is_euro ? kEuro : kReplacement;
    errors += is_euro ? 0 : 1;
    from += unit;  // after what begins no character
    left -= unit;
    ::iconv(converter, nullptr, nullptr, nullptr, nullptr);
  }
  char* to = piece.data();
  std::size_t room = piece.size();
  ::iconv(converter, nullptr, nullptr, &to, &room);  // writes a character that waited for an accent
  text.append(piece.data(), piece.size() - room);
  return text;
}

}  // namespace

std::string_view encoding_of_label(std::string_view label) {
  const std::string small = ascii_lower(without_ascii_spaces(label));
  if (small.empty() || small.find(' ') != small.npos) return {};
  const auto* found = std::ranges::find_if(kEncodings, [&](const auto& one) { return has_label(one.labels, small); });
  return found == kEncodings.end() ? std::string_view{} : found->name;
}

std::string to_utf8(std::string_view page, std::string_view encoding, std::int64_t* errors) {
  const auto* found = std::ranges::find(kEncodings, encoding, &KnownEncoding::name);
  check(found != kEncodings.end(), "to_utf8: the encoding's name");
  std::int64_t uncounted = 0;
  std::int64_t& count = errors == nullptr ? uncounted : *errors;
  if (encoding == "utf-8") return from_utf8(page.substr(page.starts_with("\xEF\xBB\xBF") ? 3 : 0), count);
  if (encoding == "windows-1252") return from_windows_1252(page);
  if (encoding.starts_with("utf-16") && (page.starts_with("\xFE\xFF") || page.starts_with("\xFF\xFE"))) {
    page.remove_prefix(2);
  }
  return from_iconv(page, std::string(found->iconv_name), count);
}

}  // namespace teratron
