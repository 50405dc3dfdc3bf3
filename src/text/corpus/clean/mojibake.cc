#include "corpus/clean/mojibake.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "corpus/clean/damaged_utf8.h"
#include "corpus/clean/garbled_signs.h"
#include "corpus/clean/shown_sequences.h"
#include "corpus/clean/windows_1252.h"

namespace teratron {
namespace {

// Nothing where `text` is not UTF-8.
std::optional<std::u32string> decoded(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (; !text.empty();) {
    const Utf8Step step = decode_utf8(text);
    if (step.status != Utf8Status::kValid) return std::nullopt;
    codes.push_back(step.code);
    text.remove_prefix(step.length);
  }
  return codes;
}

// The bytes that a reader of Latin-1 would have shown so; nothing where one of the characters is not in it.
std::optional<std::string> latin1_bytes(std::u32string_view text) {
  if (std::ranges::any_of(text, [](char32_t code) { return code > 0xFF; })) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) bytes.push_back(static_cast<char>(code));
  return bytes;
}

std::optional<std::string> windows_1252_bytes(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) {
    const auto byte = windows_1252_byte(code);
    if ((!byte && code != 0xFFFD) || code == static_cast<char32_t>(kLostByte)) return std::nullopt;
    bytes.push_back(byte ? static_cast<char>(*byte) : kLostByte);
  }
  return bytes;
}

std::optional<std::u32string> mended_whole(std::u32string_view line) {
  for (const auto& [bytes, is_lossy] :
       {std::pair{latin1_bytes(line), false}, std::pair{windows_1252_bytes(line), true}}) {
    if (!bytes) continue;
    std::string restored = with_spaces_restored(*bytes);
    if (is_lossy) restored = with_losses_shown(restored);
    if (auto codes = decoded(restored)) return codes;
  }
  return std::nullopt;
}

std::u32string mended(std::u32string line);

std::u32string mended_runs(std::u32string_view line) {
  std::u32string out;
  for (std::size_t at = 0; at < line.size();) {
    const bool may_begin = at == 0 || !is_surely_continuation(line[at - 1]);
    const std::size_t run = may_begin ? shown_run(line.substr(at)) : 0;
    const std::u32string_view part = line.substr(at, std::max<std::size_t>(1, run));
    const bool is_alone = run > 0 && run < line.size();
    out += is_alone && looks_garbled(part) ? mended(std::u32string(part)) : std::u32string(part);
    at += part.size();
  }
  return out;
}

std::u32string mended_once(const std::u32string& line) {
  if (!looks_garbled(line)) return line;
  if (auto whole = mended_whole(line)) return *whole;
  std::u32string changed = mended_runs(line);
  if (changed != line) return changed;
  for (char32_t& code : changed) {
    if (code >= 0x80 && code < 0xA0) code = windows_1252_character(static_cast<std::uint8_t>(code));
  }
  return changed;
}

std::u32string mended(std::u32string line) {
  while (true) {
    std::u32string next = mended_once(line);
    if (next == line) return line;
    line = std::move(next);
  }
}

bool is_ascii(std::string_view line) {
  return std::ranges::all_of(line, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

}  // namespace

std::string mend_mojibake(std::string_view line) {
  if (is_ascii(line)) return std::string(line);
  const auto codes = decoded(line);
  if (!codes || !looks_garbled(*codes)) return std::string(line);
  std::string out;
  for (const char32_t code : mended(*codes)) append_utf8(code, out);
  return out;
}

}  // namespace teratron
