// Pages and WARC files for tests, and what `data extract` makes of them.
#pragma once

#include <brotli/encode.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/philox.h"
#include "corpus/extract/extract_stage.h"
#include "corpus/stage_fixture.h"

namespace teratron::testing {

inline constexpr std::size_t kEnoughForATree = std::size_t{1} << 30;

inline const std::vector<std::string> kWords = {"river", "had",   "risen", "night", "ferry", "people", "talked",
                                                "about", "price", "corn",  "and",   "far",   "side",   "landing"};

inline std::string random_sentence(RandomSequence& random, std::uint64_t least_words = 8) {
  std::string text = "The";
  for (std::uint64_t left = least_words + random.below(12); left > 0; --left) {
    text += " " + kWords[random.below(kWords.size())];
  }
  return text + ".";
}

// Paragraphs of sentences, each of which begins with its number.
inline std::vector<std::string> random_paragraphs(RandomSequence& random, std::uint64_t count) {
  std::vector<std::string> paragraphs;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string& text = paragraphs.emplace_back(fmt::format("Paragraph {}:", i));
    for (std::uint64_t left = 2 + random.below(3); left > 0; --left) text += " " + random_sentence(random);
  }
  return paragraphs;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

inline std::string page_of(const std::vector<std::string>& paragraphs, const std::string& head = "") {
  std::string page = "<!doctype html><html><head>" + head +
                     "</head><body><nav><a href=/>Home</a> <a href=/delta>All the delta of the day</a></nav><div>";
  for (const std::string& one : paragraphs) page += "<p>" + one + "</p>\n";
  return page + "</div><footer>Copyright, all rights reserved by somebody.</footer></body></html>";
}

inline std::string http_response(const std::string& body, const std::string& head = "Content-Type: text/html\r\n",
                                 int status = 200) {
  return fmt::format("HTTP/1.1 {} OK\r\n{}\r\n{}", status, head, body);
}

struct WarcWriting {
  std::string type = "response", url = "http://a.org/", content_type = "application/http; msgtype=response";
  std::string line_end = "\r\n", version = "WARC/1.0";
  bool has_odd_case = false;
  std::int64_t wrong_by = 0;  // added to the length that the head says
};

inline std::string warc_record(const std::string& content, const WarcWriting& how = {}) {
  const auto name = [&](std::string text) {
    for (std::size_t i = 0; how.has_odd_case && i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      text[i] = static_cast<char>(i % 2 == 0 ? std::tolower(c) : std::toupper(c));
    }
    return text;
  };
  const std::string& end = how.line_end;
  return how.version + end + name("WARC-Type") + ": " + how.type + end + name("WARC-Target-URI") + ": " + how.url +
         end + name("WARC-Date") + ": 2026-11-23T10:00:00Z" + end + name("Content-Type") + ": " + how.content_type +
         end + name("Content-Length") + ": " + std::to_string(std::ssize(content) + how.wrong_by) + end + end +
         content + end + end;
}

inline std::string brotli(const std::string& text) {
  std::string out(::BrotliEncoderMaxCompressedSize(text.size()), '\0');
  std::size_t size = out.size();
  ::BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, text.size(),
                          reinterpret_cast<const std::uint8_t*>(text.data()), &size,
                          reinterpret_cast<std::uint8_t*>(out.data()));
  return out.substr(0, size);
}

class ExtractTest : public StageTest {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    write_file_atomically(folder_ / name, bytes);
    return folder_ / name;
  }
  // The lines that `data extract` writes.
  std::vector<nlohmann::json> extract(std::vector<std::filesystem::path> files, ExtractOptions extract_options = {},
                                      TextFormat format = TextFormat::kAuto, std::int64_t batch_bytes = 1 << 20) {
    const auto stages = stages_of(make_extract_stage(std::move(extract_options)));
    StreamOptions all = options();
    all.files = std::move(files);
    all.format = format;
    all.batch_bytes = batch_bytes;
    counts_ = run_stages(stages, all);
    statistics_ = json_of(counts_, stages);
    return json_lines(folder_ / "out.jsonl");
  }
  std::int64_t dropped(const std::string& reason) const {
    const auto& reasons = counts_.stages.at(0).dropped;
    return reasons.contains(reason) ? reasons.at(reason) : 0;
  }
};

}  // namespace teratron::testing
