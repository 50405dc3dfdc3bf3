// data extract on WARC files: records of every shape against the writer in pages.h, and files that are damaged.

#include <gmock/gmock.h>
#include <algorithm>

#include "base/compressed.h"
#include "base/error.h"
#include "corpus/pages.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExtractWarc : public ExtractTest {
 protected:
  std::string refused(const std::string& name, const std::string& bytes) {
    try {
      extract({write(name, bytes)});
    } catch (const UserError& error) {
      EXPECT_FALSE(std::filesystem::exists(folder_ / "out.jsonl"));
      return error.what();
    }
    ADD_FAILURE() << "not refused";
    return "";
  }
};

std::string chunked(const std::string& body, RandomSequence& random) {
  std::string out;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random.below(900), body.size() - at);
    out += fmt::format("{:x}{}\r\n", size, random.below(3) == 0 ? ";extension=1" : "") + body.substr(at, size) + "\r\n";
    at += size;
  }
  return out + "0\r\n\r\n";
}

std::string zlib_data(const std::string& text) {
  std::string out(::compressBound(text.size()), '\0');
  uLongf size = out.size();
  ::compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size());
  return out.substr(0, size);
}

TEST_F(ExtractWarc, ReadsRecordsOfAnyShape) {
  RandomSequence random(RandomStream{.seed = 31});
  for (int trial = 0; trial < 30; ++trial) {
    const bool is_gzip = random.below(2) == 0;
    std::string file;
    std::vector<std::string> texts, urls;
    std::map<std::string, std::int64_t> records;
    std::int64_t not_html = 0, status = 0;
    for (std::uint64_t left = 1 + random.below(12); left > 0; --left) {
      WarcWriting how{.line_end = random.below(4) == 0 ? "\n" : "\r\n",
                      .version = random.below(2) == 0 ? "WARC/1.0" : "WARC/1.1",
                      .has_odd_case = random.below(3) == 0};
      how.url = fmt::format("http://a.org/{}", left);
      std::string content;
      if (random.below(3) == 0) {
        how.type = random.below(2) == 0 ? "request" : "metadata";
        how.content_type = "application/warc-fields";
        content = "WARC/1.0 is a word in here\r\n\r\nand so on\n";
      } else {
        const auto paragraphs = random_paragraphs(random, 4);
        std::string body = page_of(paragraphs), head = random.below(2) == 0
                                                           ? "content-TYPE: text/HTML; charset=\"utf-8\"\r\n"
                                                           : "Content-Type: application/xhtml+xml\n";
        const std::uint64_t encoding = random.below(5);
        if (encoding == 1) body = gzip(body), head += "Content-Encoding: gzip\r\n";
        if (encoding == 2) body = zlib_data(body), head += "content-encoding: Deflate\r\n";
        if (encoding == 3) body = brotli(body), head += "Content-Encoding: br\r\n";
        if (encoding == 4) body = zstd(body), head += "Content-Encoding: ZSTD\r\n";
        if (random.below(2) == 0) body = chunked(body, random), head += "transfer-encoding: CHUNKED\r\n";
        const std::uint64_t kind = random.below(6);
        if (kind == 0) head = "Content-Type: image/png\r\n", ++not_html;
        if (kind == 1) ++status;
        content = http_response(body, head, kind == 1 ? 404 : 200);
        if (kind > 1) texts.push_back(joined(paragraphs)), urls.push_back(how.url);
      }
      ++records[how.type];
      const std::string record = warc_record(content, how);
      file += is_gzip ? gzip(record) : record;
    }
    // Something is always there.
    file += is_gzip ? gzip(warc_record(http_response("", "", 500))) : warc_record(http_response("", "", 500));
    const auto lines = extract({write(is_gzip ? "in.warc.gz" : "in.warc", file)});
    ASSERT_EQ(lines.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(lines[i]["text"], texts[i]);
      EXPECT_EQ(lines[i]["url"], urls[i]);
      EXPECT_EQ(lines[i]["date"], "2026-11-23T10:00:00Z");
    }
    EXPECT_EQ(dropped("not html"), not_html);
    EXPECT_EQ(dropped("status"), status + 1);
    ++records["response"];
    for (const auto& [type, count] : records) EXPECT_EQ(statistics_["stages"][0]["records: " + type], count) << type;
  }
}

TEST_F(ExtractWarc, DropsDamagedResponsesOfAServer) {
  RandomSequence random(RandomStream{.seed = 32});
  const std::string page = page_of(random_paragraphs(random, 5)), html = "Content-Type: text/html\r\n";
  const std::string chunks = html + "Transfer-Encoding: chunked\r\n", zipped = html + "Content-Encoding: gzip\r\n";
  const auto damaged = [](std::string bytes) {
    for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 20; ++i) bytes[i] = static_cast<char>(~bytes[i]);
    return bytes;
  };
  const std::vector<std::string> bad = {http_response(damaged(gzip(page)), zipped),
                                        http_response(damaged(zlib_data(page)), html + "Content-Encoding: deflate\r\n"),
                                        http_response(damaged(zstd(page)), html + "Content-Encoding: zstd\r\n"),
                                        http_response(damaged(gzip(page)), html),
                                        http_response(gzip(page).substr(0, 11), zipped),
                                        http_response(zstd(page).substr(0, 60), html + "Content-Encoding: zstd\r\n"),
                                        http_response("\x8B\x01", html + "Content-Encoding: br\r\n"),
                                        "no head at all",
                                        "HTTP/1.1 200 OK\r\nContent-Type: text/html"};
  std::string file = warc_record(http_response(page));
  for (const std::string& one : bad) file += warc_record(one);
  // A record with less content than its head says.
  for (const std::string size : {"zz", "ffffff", "5", "ffffffffffffffffff"}) {
    file += warc_record(http_response(size + "\r\n" + page, chunks));
  }
  file += warc_record(http_response(page, html + "Content-Encoding: br\r\n").replace(5, 3, "1.0"));  // not compressed
  file += warc_record(http_response("\x8B\x01", html + "Content-Encoding: compress\r\n"));
  file += warc_record("\x08\x02", {.type = "response", .content_type = "text/dns"});
  EXPECT_EQ(extract({write("in.warc", file)}).size(), 6U);
  EXPECT_EQ(dropped("bad http"), std::ssize(bad));
  EXPECT_EQ(dropped("encoding"), 1);
  EXPECT_EQ(statistics_["stages"][0]["records: response without http"], 1);
}

TEST_F(ExtractWarc, DamagedFilesAreErrorsThatNameTheRecord) {
  RandomSequence random(RandomStream{.seed = 33});
  const std::string record = warc_record(http_response(page_of(random_paragraphs(random, 5))));
  EXPECT_THAT(refused("a.warc", record + record.substr(0, record.size() / 2)),
              AllOf(HasSubstr("a.warc"), HasSubstr("record 2"), HasSubstr("cut short"),
                    HasSubstr(fmt::format("byte {}", record.size()))));
  EXPECT_THAT(refused("b.warc", record + record.substr(0, 30)), AllOf(HasSubstr("record 2"), HasSubstr("in its head")));
  const std::string member = gzip(record, 0);
  EXPECT_THAT(refused("c.warc.gz", member + member.substr(0, member.size() / 2)),
              AllOf(HasSubstr("c.warc.gz"), HasSubstr("record 2"), HasSubstr("cut short")));
  for (const std::int64_t wrong_by : {-20, -1, 20}) {
    const std::string wrong = warc_record(http_response(page_of({})), {.wrong_by = wrong_by});
    EXPECT_THAT(refused("d.warc", wrong + record), AllOf(HasSubstr("record 2"), HasSubstr("length")));
  }
  EXPECT_THAT(refused("none.warc", "<p>no record</p>"), AllOf(HasSubstr("record 1"), HasSubstr("does not begin")));
  EXPECT_THAT(refused("empty.warc.gz", ""), HasSubstr("no documents"));
  EXPECT_THAT(refused("e.warc", record + "WARC/2.0\r\nContent-Length: 0\r\n\r\n"), HasSubstr("WARC/2.0"));
  EXPECT_THAT(refused("f.warc", "WARC/1.0\r\nContent-Length: many\r\n\r\n"), HasSubstr("Content-Length"));
}

// A head that says no type of use: the body shows whether it is a page.
TEST_F(ExtractWarc, PagesWithoutATypeAreSeenInTheirBodies) {
  RandomSequence random(RandomStream{.seed = 77});
  const std::vector<std::string> paragraphs = random_paragraphs(random, 4);
  const std::string page = page_of(paragraphs);
  const std::vector<std::pair<std::string, bool>> heads = {
      {"", true},
      {"Content-Type:\r\n", true},
      {"Content-Type: text/html, text/html\r\n", true},
      {"Content-Type: text/html,text/plain; charset=utf-8\r\n", true},
      {"Content-Type: */*\r\n", true},
      {"Content-Type: text/plain\r\n", false}};
  for (const auto& [head, is_kept] : heads) {
    const auto file = write("a.warc", warc_record(http_response(page, head)));
    EXPECT_EQ(extract({file}).size(), is_kept ? 1U : 0U) << head;
  }
  for (const char* body : {"{\"json\": \"<p>a</p>\"}", "plain text", "<?xml version='1.0'?><rss><item/></rss>", ""}) {
    EXPECT_EQ(extract({write("a.warc", warc_record(http_response(body, "")))}).size(), 0U) << body;
    EXPECT_EQ(dropped("not html"), 1) << body;
  }
}

TEST_F(ExtractWarc, AResponseThatWasSavedWithItsHeadIsRead) {
  RandomSequence random(RandomStream{.seed = 78});
  const std::string page = page_of(random_paragraphs(random, 4));
  const std::string moved = "HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n";
  const auto whole = extract({write("a.html", page)});
  ASSERT_EQ(whole.size(), 1U);
  for (const std::string& head : {std::string(), moved}) {
    const auto found = extract({write("a", head + http_response(page, "content-type: text/html\r\n"))});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0]["text"], whole[0]["text"]);
  }
}

TEST_F(ExtractWarc, MailAndOlderArchivesAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"filedesc://a.arc 0.0.0.0 20100101000000 text/plain 76\n1 0 Crawler\n", "ARC"},
      {"From: <Saved by Browser>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related\r\n\r\n<html>", "MHTML"},
      {"From a@b.org Thu Jan  1 00:00:00 2015\nFrom: a@b.org\nSubject: x\n\nHello\n", "mail"},
      {"Return-Path: <a@b.org>\nReceived: from x\n\tby y\n\n<html>", "mail"}};
  for (const auto& [bytes, name] : cases) {
    EXPECT_THAT(refused("a", bytes), HasSubstr(name)) << bytes;
  }
  EXPECT_THAT(refused("a.wet", warc_record("text", {.type = "conversion"})), HasSubstr("records: conversion: 1"));
}

}  // namespace
}  // namespace teratron::testing
