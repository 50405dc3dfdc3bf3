// data extract on pages: what is the article, character sets, trees of any shape, what is dropped and why.
#include <gmock/gmock.h>

#include "base/compressed.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "base/utf8.h"
#include "corpus/extract/article.h"
#include "corpus/extract/charset.h"
#include "corpus/extract/find_encoding.h"
#include "corpus/pages.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string article_of(const std::string& page, std::int64_t least = 1) {
  const auto tree = parse_html(page, kEnoughForATree);
  return find_article(std::get<HtmlTree>(tree), least).text;
}

class ExtractStageTest : public ExtractTest {};

TEST_F(ExtractStageTest, KeepsParagraphsInOrderAndNothingBesideThem) {
  RandomSequence random(RandomStream{.seed = 21});
  for (int trial = 0; trial < 40; ++trial) {
    const auto paragraphs = random_paragraphs(random, 3 + random.below(8));
    // Parts that are no article, anywhere between paragraphs.
    static const std::vector<std::string> kBeside = {
        "<script>var secret = 'secret word that is never shown, and never printed.';</script>",
        "<style>.secret { color: red; }</style>",
        "<div style='display : none'><p>A secret that is long enough to be a sentence of an article, is it "
        "not?</p></div>",
        "<p hidden>Another secret that is long enough to be a sentence of an article, is it not?</p>",
        "<!-- secret --><noscript><p>Turn on the secret scripts, please, since nothing works without.</p></noscript>",
        "<aside><p>A secret aside that is long enough to be a sentence of an article, is it not?</p></aside>",
        "<div class='related-posts'><p>The secret of another article, and why you should read that one too.</p></div>",
        "<form><p>Tell us your secret, and we will write to you about it every single day.</p></form>",
        "<template><p>A secret template that is long enough to be a sentence.</p></template>",
        "<ul><li><a href=1>A secret list of links to</a></li><li><a href=2>all that is elsewhere</a></li></ul>"};
    std::string body;
    for (const std::string& one : paragraphs) {
      if (random.below(2) == 0) body += kBeside[random.below(kBeside.size())];
      static const std::vector<std::string> kWrappings = {"<p>{}</p>", "<div><p>{}</p></div>", "<div>{}</div>",
                                                          "<blockquote>{}</blockquote>",
                                                          "<p><b></b><span>{}</span></p>"};
      body += fmt::format(fmt::runtime(kWrappings[random.below(kWrappings.size())]), one);
    }
    const std::string text = article_of("<nav>Home</nav><div><div id=content>" + body + "</div></div>");
    EXPECT_EQ(text, joined(paragraphs)) << body;
  }
}

TEST_F(ExtractStageTest, CollapsesSpacesAndKeepsLines) {
  const std::string long_one = "This is a paragraph that has enough words in it to be told from a label, I hope.";
  EXPECT_EQ(
      article_of("<p>" + long_one + "</p><p>  a&nbsp;&nbsp;b \n\t c<br>next&shy; line<br>\n<br>apart &amp; so</p>"),
      long_one + "\na b c\nnext line\napart & so");
  // Two line breaks end a block as a paragraph does: what is behind them is a link, and goes.
  EXPECT_EQ(article_of("<div>" + long_one + "<br><br><a href=x>Read all that we have on words</a></div>"), long_one);
  EXPECT_EQ(article_of("<p>" + long_one + "</p><pre>\nint main() {\n  return  0;\n\n}\n</pre><p>" + long_one + "</p>"),
            long_one + "\nint main() {\n  return  0;\n\n}\n" + long_one);
  EXPECT_EQ(
      article_of("<p>" + long_one + "</p><ul><li>one<li>two <b>t</b>wo</ul><table><tr><td>1<td>2<tr><td>3</table>"),
      long_one + "\none\ntwo two\n1\n2\n3");
}

TEST_F(ExtractStageTest, AnyTagsGiveATreeOrARefusal) {
  RandomSequence random(RandomStream{.seed = 22});
  static const std::vector<std::string> kPieces = {"<div>",
                                                   "</div>",
                                                   "<p>",
                                                   "</p>",
                                                   "<table>",
                                                   "<tr>",
                                                   "<td>",
                                                   "</table>",
                                                   "<b>",
                                                   "</b>",
                                                   "<a href='x'>",
                                                   "</a>",
                                                   "<ul>",
                                                   "<li>",
                                                   "</ul>",
                                                   "<select>",
                                                   "<option>",
                                                   "<svg>",
                                                   "<desc>",
                                                   "</svg>",
                                                   "<math>",
                                                   "<mi>",
                                                   "<form>",
                                                   "<button>",
                                                   "<frameset>",
                                                   "<frame>",
                                                   "<template>",
                                                   "</template>",
                                                   "<script>",
                                                   "</script>",
                                                   "<style>",
                                                   "</style>",
                                                   "<!--",
                                                   "-->",
                                                   "<![CDATA[",
                                                   "]]>",
                                                   "<title>",
                                                   "</title>",
                                                   "<textarea>",
                                                   "<pre>",
                                                   "<br>",
                                                   "<body>",
                                                   "</body>",
                                                   "</html>",
                                                   "<html>",
                                                   "<head>",
                                                   "&amp;",
                                                   "&#0;",
                                                   "&#xD800;",
                                                   "&nosuch;",
                                                   "<",
                                                   ">",
                                                   "\"",
                                                   "='",
                                                   "<a b=\"",
                                                   "word ",
                                                   "A sentence of words. ",
                                                   std::string(1, '\0'),
                                                   "\xFF",
                                                   "\xC3",
                                                   "\u00e9",
                                                   "<h1>",
                                                   "</h1>",
                                                   "<blockquote>",
                                                   "<font size=1>",
                                                   "<i>",
                                                   "<plaintext>"};
  int refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::string page;
    const std::uint64_t kinds = 1 + random.below(kPieces.size()), first = random.below(kPieces.size());
    for (std::uint64_t left = random.below(trial % 40 == 0 ? 5000 : 200); left > 0; --left) {
      page += kPieces[(first + random.below(kinds)) % kPieces.size()];
    }
    const auto parsed = parse_html(page, std::size_t{1} << 26);
    if (const auto* tree = std::get_if<HtmlTree>(&parsed)) {
      const std::string text = find_article(*tree, 1).text + tree->title;
      EXPECT_TRUE(is_utf8(text));
      EXPECT_EQ(text.find('\0'), text.npos);
    } else {
      ++refused;
    }
  }
  EXPECT_LT(refused, 200);
}

TEST_F(ExtractStageTest, RefusesWhatNestsTooDeepAndWhatBlowsUp) {
  const auto repeated = [](const std::string& piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += piece;
    return text;
  };
  const auto reason_of = [](const std::string& page) {
    const auto parsed = parse_html(page, std::size_t{16} << 20);
    return std::holds_alternative<HtmlRefusal>(parsed) ? std::get<HtmlRefusal>(parsed).reason : "none";
  };
  EXPECT_EQ(reason_of(repeated("<div>", 100'000)), "too deep");
  EXPECT_EQ(reason_of(repeated("<div>", 100'000) + "<frameset>"), "too deep");  // gumbo takes the body away then
  EXPECT_EQ(reason_of(repeated("<div></span>", 100'000)), "too deep");
  EXPECT_EQ(reason_of(repeated("<div>", 512)), "none");
  EXPECT_EQ(reason_of(repeated("<div>x</div>", 20'000)), "none");
  EXPECT_EQ(reason_of(repeated("<p>x<li>y<td>z<br><img>", 2'000)), "none");  // what closes by itself
  EXPECT_EQ(reason_of(repeated("<!-- <b><b> --><script>'<b>'</script><p title='<b>'><i></i></p>", 600)), "none");
  // Every paragraph opens all the open fonts again.
  std::string fonts;
  for (int i = 0; i < 400; ++i) fonts += fmt::format("<font class={}>", i);
  EXPECT_EQ(reason_of("<p>" + fonts + repeated("<p>x", 2'000)), "too large");
}

TEST_F(ExtractStageTest, ReadsEachEncodingThatPagesSay) {
  EXPECT_EQ(encoding_of_label(" Latin1\n"), "windows-1252");
  EXPECT_EQ(encoding_of_label("GB2312"), "gb18030");
  EXPECT_EQ(encoding_of_label("utf-7"), "");
  const std::string meta = "<head><meta charset='koi8-r'>";
  EXPECT_EQ(find_encoding("\xEF\xBB\xBF" + meta, "latin1"), "utf-8");
  EXPECT_EQ(find_encoding(meta, "Shift_JIS"), "shift_jis");
  EXPECT_EQ(find_encoding(meta, "nonsense"), "koi8-r");
  EXPECT_EQ(find_encoding("<META http-equiv=Content-Type content=\"text/html; charset = big5\">", ""), "big5");
  EXPECT_EQ(find_encoding("<!-- <meta charset=big5> -->\xC3\xA9", ""), "utf-8");
  EXPECT_EQ(find_encoding("<?xml version='1.0' encoding='iso-8859-2'?>", ""), "iso-8859-2");
  EXPECT_EQ(find_encoding("<meta charset=utf-16>", ""), "utf-8");
  EXPECT_EQ(find_encoding("caf\xE9", ""), "windows-1252");
  EXPECT_EQ(to_utf8("\x93\x81\xE9\x94", "windows-1252"), "\u201c\u0081\u00e9\u201d");
  EXPECT_EQ(to_utf8("\xC1", "koi8-r"), "\u0430");
  EXPECT_EQ(to_utf8("\x82\xA0", "shift_jis"), "\u3042");
  EXPECT_EQ(to_utf8(std::string("\xFF\xFE\xE9\0", 4), "utf-16le"), "\u00e9");
  EXPECT_EQ(to_utf8(std::string("a\0\0\xD8z\0\0\xDCz\0", 10), "utf-16le"), "a\uFFFDz\uFFFDz");  // halves of pairs
  EXPECT_EQ(to_utf8(std::string("\0a\xD8\0\0z\xDC\0\0z", 10), "utf-16be"), "a\uFFFDz\uFFFDz");
  EXPECT_EQ(to_utf8("a\xFF\xE9z", "utf-8"), "a\uFFFD\uFFFDz");
  EXPECT_EQ(to_utf8("a\xFFz", "euc-kr"), "a\uFFFDz");
  std::int64_t errors = 0;
  EXPECT_EQ(to_utf8("\x80 1\x81\x80\xFF\x80", "gb18030", &errors), "\u20AC 1\u4E90\uFFFD\u20AC");
  EXPECT_EQ(errors, 1);
  // Each label of each encoding gives text that is UTF-8, whatever the bytes.
  RandomSequence random(RandomStream{.seed = 23});
  for (const std::string label : {"utf8", "cp866", "latin2", "l9", "koi", "mac", "tis-620", "cp1251", "gbk", "big5",
                                  "x-euc-jp", "iso-2022-jp", "sjis", "korean", "utf-16", "unicodefffe"}) {
    std::string bytes(500, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    EXPECT_TRUE(is_utf8(to_utf8(bytes, encoding_of_label(label)))) << label;
  }
}

// Words in the order of the text, so that its lines may break elsewhere.
std::vector<std::string> words_between_spaces(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    if (word != "-" && word != "|") words.push_back(word);  // trafilatura's marks of items and cells
  }
  return words;
}

TEST_F(ExtractStageTest, FindsWhatTrafilaturaDoes) {
  auto lines = json_lines(std::string(TERATRON_SOURCE_DIR) + "/tests/golden/corpus/extract.jsonl");
  lines.erase(lines.begin());
  ASSERT_EQ(lines.size(), 8U);
  for (const auto& line : lines) {
    std::string theirs = line["trafilatura"];
    // It keeps the headline, which is our document's title.
    if (line["name"] == "article") theirs = theirs.substr(theirs.find('\n') + 1);
    EXPECT_EQ(words_between_spaces(article_of(line["html"])), words_between_spaces(theirs)) << line["name"];
  }
}

TEST_F(ExtractStageTest, JsonLinesKeepTheirFields) {
  RandomSequence random(RandomStream{.seed = 24});
  const auto paragraphs = random_paragraphs(random, 4);
  nlohmann::ordered_json line = {{"id", 7}, {"page", page_of(paragraphs, "<title>A  title</title>")}, {"text", "old"}};
  std::string bytes = line.dump();
  bytes.insert(1, "\"n\": 1.50e2, ");
  write("in.jsonl", bytes + "\n{\"page\": \"<p>short</p>\", \"url\": \"u\"}\n");
  const auto lines = extract({folder_ / "in.jsonl"}, {.html_key = "page"});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["text"], joined(paragraphs));
  EXPECT_EQ(lines[0]["title"], "A title");
  EXPECT_EQ(lines[0]["id"], 7);
  EXPECT_FALSE(lines[0].contains("page"));
  EXPECT_THAT(read_file(folder_ / "out.jsonl"), HasSubstr("\"n\": 1.50e2"));
  EXPECT_EQ(dropped("no article"), 1);
  EXPECT_THAT(read_file(folder_ / "dropped.jsonl"), AllOf(HasSubstr("in.jsonl"), HasSubstr("short")));
  // A line without the field is bad.
  write("bad.jsonl", "{\"text\": 1}\n");
  EXPECT_THROW(extract({folder_ / "bad.jsonl"}), UserError);
}

// As the same page in a file of its own.
TEST_F(ExtractStageTest, PagesInJsonLinesMayHoldNul) {
  RandomSequence random(RandomStream{.seed = 26});
  const auto paragraphs = random_paragraphs(random, 4);
  std::string page = page_of(paragraphs);
  page.insert(page.find("Paragraph 0") + 4, 1, '\0');
  for (const auto& file : {write("a.html", page), write("a.jsonl", nlohmann::json{{"html", page}}.dump())}) {
    const auto lines = extract({file});
    ASSERT_EQ(lines.size(), 1U) << file;
    EXPECT_EQ(lines[0]["text"], joined(paragraphs)) << file;
  }
  EXPECT_EQ(counts_.bad, 0);
}

// A column's type says whether it has bytes: texts that are base64 by themselves are no pages, as in JSON lines.
TEST_F(ExtractStageTest, PagesOfParquetHaveTheirOwnEncodings) {
  const auto lines = extract({golden_parquet() / "pages-plain.parquet"});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0]["text"].get<std::string>(), HasSubstr("élégante a été écrite ici, n’est-ce pas, et le café"));
  EXPECT_EQ(lines[1]["text"], lines[0]["text"]);
  EXPECT_THAT(lines[2]["text"].get<std::string>(), HasSubstr("日本語の文章はここにあります。"));
  EXPECT_EQ(lines[2]["url"], "https://example.org/2");
  EXPECT_EQ(extract({golden_parquet() / "pages-plain.parquet"}, {.html_key = "text"}).size(), 0U);
  EXPECT_EQ(dropped("not a page"), 3);
}

TEST_F(ExtractStageTest, ReadsFoldersOfPages) {
  RandomSequence random(RandomStream{.seed = 25});
  std::vector<std::vector<std::string>> articles;
  for (int i = 0; i < 4; ++i) articles.push_back(random_paragraphs(random, 4));
  std::filesystem::create_directories(folder_ / "pages/deep");
  write("pages/a.html", page_of(articles[0], "<link rel=canonical href='https://a.org/a'>"));
  write("pages/b.htm.gz", gzip(page_of(articles[1], "<meta charset=latin1>") + "caf\xE9"));
  write("pages/c.jsonl", nlohmann::json{{"html", page_of(articles[2])}}.dump());
  write("pages/deep/d.warc.zst", zstd(warc_record(http_response(page_of(articles[3])))));
  write("pages/e.css", "p { color: red }");
  write("pages/f.html", "");
  const auto lines = extract({folder_ / "pages"});
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(lines[i]["text"], joined(articles[i])) << i;
  EXPECT_EQ(lines[0]["url"], "https://a.org/a");
  EXPECT_EQ(lines[3]["date"], "2026-11-23T10:00:00Z");
  EXPECT_EQ(dropped("no article"), 1);
  std::filesystem::create_directories(folder_ / "none");
  EXPECT_THROW(extract({folder_ / "none"}), UserError);
}

TEST_F(ExtractStageTest, DropsPagesAboveTheLimit) {
  RandomSequence random(RandomStream{.seed = 26});
  const std::string page = page_of(random_paragraphs(random, 1000));  // longer than what is read to find the head
  const auto most = std::ssize(page);
  write("a.html", page);
  write("b.html.gz", gzip(page));
  write("c.jsonl", nlohmann::json{{"html", page}}.dump());
  const std::string html = "Content-Type: text/html\r\n";
  const auto record = [](const std::string& head, const std::string& body) {
    return warc_record(http_response(body, head));
  };
  write("d.warc", record(html, page) + record(html + "Content-Encoding: gzip\r\n", gzip(page)));
  // Data cut off at the limit lack their end, which is not the server's fault.
  const std::string chunked = fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", page.size(), page);
  write("e.warc", record(html + "Transfer-Encoding: chunked\r\n", chunked));
  const std::vector<std::filesystem::path> files = {folder_ / "a.html", folder_ / "b.html.gz", folder_ / "c.jsonl",
                                                    folder_ / "d.warc"};
  EXPECT_EQ(extract(files, {.most_page_bytes = most}).size(), 5U);
  EXPECT_EQ(extract(files, {.most_page_bytes = most - 1}).size(), 0U);
  EXPECT_EQ(dropped("too large"), 5);
  EXPECT_EQ(extract({folder_ / "e.warc"}, {.most_page_bytes = most - 1}).size(), 0U);
  EXPECT_EQ(dropped("too large"), 1);
  EXPECT_EQ(extract({folder_ / "e.warc"}, {.most_page_bytes = std::ssize(chunked)}).size(), 1U);
}

TEST_F(ExtractStageTest, DoesNotDependOnThreadsOrBatches) {
  RandomSequence random(RandomStream{.seed = 27});
  std::string warc, lines;
  for (int i = 0; i < 60; ++i) {
    const std::string page = page_of(random_paragraphs(random, random.below(6)));
    warc += gzip(warc_record(http_response(page)));
    lines += nlohmann::json{{"html", page}}.dump() + "\n";
    if (i % 9 == 0) write(fmt::format("{}.html", i), page);
  }
  const std::vector<std::filesystem::path> files = {write("a.warc.gz", warc), folder_ / "0.html", folder_ / "9.html",
                                                    write("b.jsonl", lines), folder_ / "18.html"};
  const int threads_before = thread_count();
  std::string expected;
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t batch : {1, 5000, 1 << 20}) {
      set_thread_count(threads);
      extract(files, {}, TextFormat::kAuto, batch);
      const std::string bytes = read_file(folder_ / "out.jsonl") + read_file(folder_ / "dropped.jsonl");
      if (expected.empty()) expected = bytes;
      EXPECT_EQ(bytes, expected) << threads << " threads, batches of " << batch;
    }
  }
  set_thread_count(threads_before);
  EXPECT_GT(counts_.kept, 50);
  EXPECT_GT(dropped("no article"), 5);
}

}  // namespace
}  // namespace teratron::testing
