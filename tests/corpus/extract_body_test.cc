// data extract on bodies that are not what their heads say: each packing, whole and cut short, under each declaration.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/compressed.h"
#include "corpus/extract/body_kind.h"
#include "corpus/extract/http_response.h"
#include "corpus/pages.h"

namespace teratron::testing {
namespace {

using namespace std::string_literals;
using ::testing::AnyOf;

using Packer = std::string (*)(const std::string&);

std::string deflated(const std::string& text, int window_bits) {
  z_stream stream{};
  ::deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}
std::string as_is(const std::string& text) { return text; }
std::string gzip_body(const std::string& text) { return gzip(text); }
std::string zlib(const std::string& text) { return deflated(text, 15); }
std::string raw_deflate(const std::string& text) { return deflated(text, -15); }
std::string zstd_body(const std::string& text) { return zstd(text); }
std::string chunked(const std::string& text) {
  std::string out;
  for (std::size_t at = 0, size = 1; at < text.size(); at += size) {
    size = std::min<std::size_t>(300 + at % 7, text.size() - at);
    out += fmt::format("{:X}{}\r\n", size, at % 2 == 0 ? "" : " ;name=\"value\"") + text.substr(at, size) + "\r\n";
  }
  return out + "0\r\nX-Trailer: words\r\n\r\n";
}
std::string two_members(const std::string& text) {
  return gzip(text.substr(0, text.size() / 3)) + gzip(text.substr(text.size() / 3));
}
std::string twice(const std::string& text) { return gzip(gzip(text)); }
std::string gzip_in_chunks(const std::string& text) { return chunked(gzip(text)); }
std::string gzip_in_brotli(const std::string& text) { return brotli(gzip(text)); }
std::string chunks_in_gzip(const std::string& text) { return gzip(chunked(text)); }
std::string chunks_in_chunks(const std::string& text) { return chunked(chunked(text)); }

struct Packing {
  std::string name;
  Packer pack;
  bool is_seen;  // in the body, cut short as well
};
const std::vector<Packing> kPackings = {{"plain", as_is, true},
                                        {"gzip", gzip_body, true},
                                        {"zlib", zlib, true},
                                        {"zstd", zstd_body, true},
                                        {"deflate", raw_deflate, false},
                                        {"brotli", brotli, false},
                                        {"chunks", chunked, true},
                                        {"two members", two_members, true},
                                        {"gzip twice", twice, true},
                                        {"gzip in chunks", gzip_in_chunks, true},
                                        {"gzip in brotli", gzip_in_brotli, false},
                                        {"chunks in gzip", chunks_in_gzip, true},
                                        {"chunks in chunks", chunks_in_chunks, true}};

// Heads: what they say of the body, none of which need be so.
std::vector<std::string> declarations() {
  std::vector<std::string> all;
  for (const std::string transfer : {"", "chunked", "gzip, chunked", "identity"}) {
    for (const std::string content :
         {"", "gzip", "x-gzip", "deflate", "br", "zstd", "none", "identity", "UTF-8", "br, gzip", "gzip, gzip"}) {
      std::string head = "Content-Type: text/html\r\nContent-Length: 17\r\n";
      if (!transfer.empty()) head += "Transfer-Encoding: " + transfer + "\r\n";
      if (!content.empty()) head += "Content-Encoding: " + content + "\r\n";
      all.push_back(head);
    }
  }
  return all;
}

std::string random_bytes(std::size_t count) {
  RandomSequence random(RandomStream{.seed = 71});
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

// Files that are no pages, as far as readers of their formats look at first.
std::vector<std::pair<std::string, std::string>> files_of_other_formats() {
  const std::string noise = random_bytes(3000), nuls(600, '\0');
  std::string tar(512, '\0');
  tar.replace(0, 8, "page.htm").replace(257, 6, "ustar\0"s);
  return {{"PNG", "\x89PNG\r\n\x1A\n\0\0\0\rIHDR"s + noise},
          {"JPEG", "\xFF\xD8\xFF\xE0\0\x10JFIF\0"s + noise},
          {"GIF", "GIF89a\x10\0\x10\0"s + noise},
          {"WebP", "RIFF\x24\x0C\0\0WEBPVP8 "s + noise},
          {"PDF",
           "%PDF-1.4\n1 0 obj << /Title (The ferry lay at the far bank all morning, and nobody in the village seemed "
           "to mind it very much. People sat on their bags and talked about the price of corn.) >> endobj\n"},
          {"PDF", "\r\n%PDF-1.7\n%\xE2\xE3\xCF\xD3\n" + noise},
          {"ZIP", "PK\3\4\x14\0\6\0\x08\0[Content_Types].xml"s + noise},
          {"tar", tar + page_of({"The ferry lay at the far bank all morning, as it had done before."}) + nuls},
          {"WOFF2", "wOF2\0\1\0\0"s + noise},
          {"TrueType", "\0\1\0\0\0\x10"s + noise},
          {"MP4",
           "\0\0\0\x18"
           "ftypisom"s +
               noise},
          {"MP3", "ID3\3\0\0\0"s + noise},
          {"PE", "MZ\x90\0\3\0"s + noise},
          {"bytes that are no text", noise},
          {"bytes that are no text", "<html>" + noise}};
}

class ExtractBody : public ExtractTest {
 protected:
  void SetUp() override {
    RandomSequence random(RandomStream{.seed = 72});
    paragraphs_ = random_paragraphs(random, 12);
    page_ = page_of(paragraphs_);
  }

  void add(const std::string& name, const std::string& head, const std::string& body) {
    names_.push_back(name);
    warc_ += warc_record(http_response(body, head), {.url = fmt::format("http://a.org/{}", names_.size() - 1)});
  }
  // The texts that were kept, by the names of their bodies' cells.
  std::map<std::string, std::string> extract_added() {
    std::map<std::string, std::string> texts;
    for (const auto& line : extract({write("in.warc", warc_)})) {
      const std::string url = line["url"];
      texts[names_[std::stoul(url.substr(url.rfind('/') + 1))]] = line["text"];
    }
    return texts;
  }

  std::vector<std::string> paragraphs_, names_;
  std::string page_, warc_;
};

TEST_F(ExtractBody, AreReadWhateverTheirHeadsSay) {
  const std::string in_front = "Words that stand before the first tag of this page. ";
  for (const Packing& packing : kPackings) {
    for (const std::string& head : declarations()) {
      add(packing.name + " page as\n" + head, head, packing.pack(page_));
      if (names_.size() % 3 == 0) continue;
      add(packing.name + " text as\n" + head, head, packing.pack(in_front + page_));
    }
  }
  const auto texts = extract_added();
  for (const std::string& name : names_) {
    EXPECT_THAT(texts.contains(name) ? texts.at(name) : "dropped",
                AnyOf(joined(paragraphs_), in_front.substr(0, in_front.size() - 1) + "\n" + joined(paragraphs_)))
        << name;
  }
  EXPECT_EQ(counts_.kept, std::ssize(names_));
}

TEST_F(ExtractBody, KeepWhatIsThereWhenTheyAreCutShort) {
  for (const Packing& packing : kPackings) {
    const std::string whole = packing.pack(page_);
    for (const std::string& head : declarations()) {
      for (const std::size_t length : {whole.size() - 5, whole.size() / 2}) {
        add(fmt::format("{} to {} as\n{}", packing.name, length, head), head, whole.substr(0, length));
      }
    }
  }
  const auto texts = extract_added();
  const std::set<std::string> must_be_kept = {"plain", "gzip", "zlib", "chunks", "gzip in chunks"};
  for (const std::string& name : names_) {
    const std::string packing = name.substr(0, name.find(" to "));
    if (!texts.contains(name)) {
      EXPECT_FALSE(must_be_kept.contains(packing)) << name;
      continue;
    }
    // The page's beginning is read, except for the sizes of chunks that no head declares.
    if (packing.starts_with("chunks") && name.find("chunked") == name.npos) continue;
    EXPECT_TRUE(joined(paragraphs_).starts_with(texts.at(name))) << name << "\n" << texts.at(name);
  }
  std::int64_t flawed = 0;
  for (const auto& [fact, count] : statistics_["stages"][0].items()) {
    if (fact.starts_with("kept though damaged: ")) flawed += count.get<std::int64_t>();
  }
  EXPECT_GT(flawed, 200);
}

TEST_F(ExtractBody, SayWhatTheyLack) {
  const std::string chunks = "Transfer-Encoding: chunked\r\n", html = "Content-Type: text/html\r\n";
  const std::string whole = chunked(page_);
  std::string bad_trailer = gzip(page_);
  bad_trailer.back() = static_cast<char>(bad_trailer.back() ^ 1);
  add("1", html + chunks, whole.substr(0, whole.rfind("0\r\nX-Trailer")));
  add("2", html + chunks, whole.substr(0, whole.size() - 80));
  add("3", html + chunks, whole.substr(0, 1500) + page_);
  add("4", html, gzip(page_).substr(0, gzip(page_).size() - 6));
  add("5", html, bad_trailer);
  add("6", html, gzip(page_) + gzip(page_).substr(0, 20));
  EXPECT_EQ(extract_added().size(), 6U);
  const auto& facts = statistics_["stages"][0];
  EXPECT_EQ(facts.value("kept though damaged: no last chunk", 0), 1);
  EXPECT_EQ(facts.value("kept though damaged: cut in a chunk", 0), 1);
  EXPECT_EQ(facts.value("kept though damaged: wrong size of a chunk", 0), 1);
  EXPECT_EQ(facts.value("kept though damaged: compression cut short", 0), 2);
  EXPECT_EQ(facts.value("kept though damaged: wrong checksum of the compression", 0), 1);
}

TEST_F(ExtractBody, ThatAreNoPagesAreDroppedByTheirKind) {
  const auto files = files_of_other_formats();
  const std::vector<std::string> heads = declarations();  // each packing of each file is under every fifth
  std::int64_t cells = 0;
  for (const auto& [kind, bytes] : files) {
    EXPECT_EQ(kind, file_format_of(bytes).empty() ? "bytes that are no text" : file_format_of(bytes));
    for (const Packing& packing : kPackings) {
      const std::string body = packing.pack(bytes);
      for (std::size_t i = static_cast<std::size_t>(cells) % 5; i < heads.size(); i += 5) {
        const std::string& head = heads[i];
        add(kind + " as " + packing.name + " in\n" + head, head, body);
        add(kind + " as half of " + packing.name + " in\n" + head, head, body.substr(0, body.size() / 2 + 300));
        cells += 2;
      }
    }
  }
  for (const auto& [name, text] : extract_added()) ADD_FAILURE() << name << ":\n" << text.substr(0, 300);
  EXPECT_GT(dropped("not a page"), cells / 2);
  EXPECT_EQ(dropped("not a page") + dropped("bad http") + dropped("encoding") + dropped("no article"), cells);
}

TEST_F(ExtractBody, ThatAreScriptsStyleSheetsAndBase64AreDroppedWhateverTheirTypeSays) {
  const std::string script =
      "/* Opens and closes the menu. Written for people who have no mouse, of whom there are more than you think. */\n"
      "(function () {\n  var menu = document.querySelector('.menu');\n  menu.onclick = function (event) {\n"
      "    var open = menu.dataset.open === 'yes';\n    menu.dataset.open = open ? 'no' : 'yes';\n"
      "    console.log('The menu is ' + (open ? 'closed' : 'open') + ', as the user wanted it to be.');\n  };\n})();\n";
  const std::string style =
      "/* Colours of the site, which were chosen by a vote of all who work here. */\n"
      "body { margin: 0; color: #333; }\n.menu > li { display: inline-block; padding: 4px 8px; }\n"
      "@media (max-width: 40em) { .menu > li { display: block; } .menu { position: static; } }\n";
  std::string one_word, lines;
  RandomSequence random(RandomStream{.seed = 31});
  for (int i = 0; i < 3000; ++i) {
    const char digit = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.below(64)];
    one_word += digit;
    lines += digit;
    if (i % 76 == 75) lines += "\r\n";
  }
  std::string packed = script;
  std::erase_if(packed, [](char c) { return c == ' ' || c == '\n'; });
  const std::vector<std::string> bodies = {
      script, style, packed, one_word, lines, "<html><body><p>" + lines, "data:image/png;base64," + one_word};
  std::string warc;
  for (const std::string& body : bodies) warc += warc_record(http_response(body));
  // Texts about programs stay, and so does plain text that a server takes for a page.
  const std::string about = "<p>A menu that opens by a click needs three lines, and none of them is long:</p><pre>" +
                            script + "</pre><p>That is all that there is to it, and you may copy it to your site.</p>";
  const std::string plain = joined(random_paragraphs(random, 5)) + " Its key = value; so {it} is.";
  const std::string underlined =
      "What is new\n" + std::string(70, '=') + "\n\nThe menu opens by a key as well, which was asked for often.\n";
  for (const std::string& page : {about, plain, underlined}) warc += warc_record(http_response(page));
  const auto lines_out = extract({write("a.warc", warc)});
  EXPECT_EQ(dropped("not a page"), std::ssize(bodies)) << statistics_;
  ASSERT_EQ(lines_out.size(), 3U);
  EXPECT_THAT(lines_out[0]["text"].get<std::string>(), ::testing::HasSubstr("menu.onclick"));
}

TEST_F(ExtractBody, CrawlersTypesCountWhereNothingElseIsKnown) {
  const auto add_seen = [&](const std::string& seen, const std::string& head, const std::string& body) {
    std::string record = warc_record(http_response(body, head), {.url = "http://a.org/" + seen});
    warc_ += record.insert(record.find("\r\n") + 2, "WARC-Identified-Payload-Type: " + seen + "\r\n");
  };
  const std::string html = "Content-Type: text/html\r\n", words = "Words and words, and no tag at all. ";
  add_seen("image/png", html, page_);                                          // the body shows that it is a page
  add_seen("text/html", "Content-Type: application/octet-stream\r\n", page_);  // the server says nothing of use
  add_seen("application/xhtml+xml", "", page_);                                // or nothing
  add_seen("application/pdf", html, words + words + words + words);            // dropped
  add_seen("text/html", "Content-Type: text/css\r\n", page_);                  // dropped: the server knows
  add_seen("text/html", html, random_bytes(2000));                             // dropped
  EXPECT_EQ(extract({write("in.warc", warc_)}).size(), 3U);
  EXPECT_EQ(dropped("not a page"), 2);
  EXPECT_EQ(dropped("not html"), 1);
}

}  // namespace
}  // namespace teratron::testing
