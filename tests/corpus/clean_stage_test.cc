// data clean as a stage: lengths in tokens, and the rules about URLs.
#include "corpus/clean/clean_stage.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "corpus/stage_fixture.h"
#include "tokenizer/bpe/bpe_trainer.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tokenizer& small_tokenizer() {
  static const Tokenizer made = [] {
    const std::string_view sentence = "the quick brown fox jumps over the lazy dog, the end of the story it's";
    const std::vector<std::string_view> texts(3, sentence);
    return Tokenizer(train_bpe(texts, {.vocab_size = 400}));
  }();
  return made;
}

class CleanStage : public StageTest {
 protected:
  std::filesystem::path lists() {
    write_file_atomically(folder_ / "domains.txt", "# none of these\nbad.org\nShop.Example.com # all of it\n");
    write_file_atomically(folder_ / "extensions.txt", "jpg\nPDF\n");
    return folder_.path();
  }
  // The numbers of the documents with these URLs that are kept.
  std::vector<int> kept_of(const std::vector<std::string>& urls) {
    std::string lines;
    for (std::size_t i = 0; i < urls.size(); ++i) {
      lines += nlohmann::json{{"id", i}, {"text", "t"}, {"url", urls[i]}}.dump() + "\n";
    }
    write_file_atomically(folder_ / "in.jsonl", lines);
    CleanOptions rules{.min_tokens = 0};
    rules.url_rules.emplace(lists());
    counts_ = run_stages(stages_of(make_clean_stage(std::move(rules))), options());
    std::vector<int> kept;
    for (const auto& line : json_lines(folder_ / "out.jsonl")) kept.push_back(line["id"]);
    return kept;
  }
};

TEST(HasTokens, IsWhatCountingAllTokensSays) {
  RandomSequence random(RandomStream{.seed = 3});
  const std::vector<std::string> pieces = {"the", " ",    "quick",  "'s", "\n", "  ",
                                           ", ",  " dog", "\u00e9", "12", " a", "b c"};
  for (int trial = 0; trial < 500; ++trial) {
    std::string text;
    for (std::uint64_t left = random.below(60); left > 0; --left) text += pieces[random.below(pieces.size())];
    const auto tokens = std::ssize(small_tokenizer().encode(text));
    EXPECT_TRUE(has_tokens(small_tokenizer(), text, tokens));
    EXPECT_FALSE(has_tokens(small_tokenizer(), text, tokens + 1));
  }
}

// As Llama 2's tokenizer, and with tokens so long that the text is encoded in several parts.
TEST(HasTokens, CountsTheSpaceBeforeTheTextOnce) {
  const std::string_view words = " extraordinarily uncharacteristic misunderstandings";
  const std::vector<std::string_view> texts(3, words);
  BpeModel model = train_bpe(texts, {.vocab_size = 400});
  model.pipeline.prefix = BpePrefix::kAlways;
  const Tokenizer tokenizer(std::move(model));
  std::string text;
  for (int i = 0; i < 40; ++i) text += words.substr(i == 0 ? 1U : 0U);
  const auto tokens = std::ssize(tokenizer.encode(text));
  ASSERT_LT(10 * tokens, std::ssize(text));
  EXPECT_TRUE(has_tokens(tokenizer, text, tokens));
  EXPECT_FALSE(has_tokens(tokenizer, text, tokens + 1));
}

TEST_F(CleanStage, DropsShortDocumentsAfterRepair) {
  CleanOptions options{.tokenizer = small_tokenizer(), .min_tokens = 4};
  const std::string four = "the quick brown fox", three = "the quick brown";
  ASSERT_EQ(small_tokenizer().encode(four).size(), 4U);
  ASSERT_EQ(small_tokenizer().encode(three).size(), 3U);
  EXPECT_THAT(
      through(stages_of(make_clean_stage(options)), {four, three, "\x01" + four + "\n\n", "\n" + three + "\n\n\n"}),
      ElementsAre(four, four));
  EXPECT_EQ(counts_.stages[0].dropped.at("short"), 2);
  EXPECT_EQ(counts_.stages[0].changed, 1);
  EXPECT_THAT(json_lines(folder_ / "dropped.jsonl")[0]["detail"], "3 tokens of 4");
}

TEST_F(CleanStage, DropsUrlsByDomainEndingFormAndSecondSight) {
  EXPECT_THAT(kept_of({"http://good.org/a", "https://bad.org/", "http://www.delta.bad.org/a.html", "http://notbad.org/",
                       "http://shop.example.com/x", "http://example.com/x", "http://good.org/pic.JPG?w=1",
                       "http://good.org/x?f=pic.jpg", "http://good.org/paper.pdf#page=2", "ftp://good.org/b",
                       "good.org/c", "http://good/d", "http://good.org/a b", "http:///x", "HTTPS://WWW.Good.org/a/#top",
                       "http://good.org/A", "http://u@good.org:80/a", "http://good.org:x/e"}),
              ElementsAre(0, 3, 5, 7, 15));
  EXPECT_EQ(counts_.stages[0].dropped,
            (std::map<std::string, std::int64_t>{
                {"domain", 3}, {"extension", 2}, {"malformed url", 6}, {"duplicate url", 2}}));
}

TEST_F(CleanStage, KeepsThePiecesOfOneDocumentAndOfNoOtherOfTheSamePage) {
  const std::string page = "http://good.org/a";
  std::string lines;
  const auto add = [&](int id, std::optional<int> piece_of) {
    nlohmann::json line = {{"id", id}, {"text", "t"}, {"url", page}};
    if (piece_of) line["piece_of"] = *piece_of;
    lines += line.dump() + "\n";
  };
  add(0, 4);
  add(1, 4);
  add(2, 9);  // a later copy of the page, cut as well
  add(3, std::nullopt);
  add(4, 4);
  write_file_atomically(folder_ / "in.jsonl", lines);
  CleanOptions rules{.min_tokens = 0};
  rules.url_rules.emplace(lists());
  counts_ = run_stages(stages_of(make_clean_stage(rules)), options());
  std::vector<int> kept;
  for (const auto& line : json_lines(folder_ / "out.jsonl")) kept.push_back(line["id"]);
  EXPECT_THAT(kept, ElementsAre(0, 1, 4));
  EXPECT_EQ(counts_.stages[0].dropped, (std::map<std::string, std::int64_t>{{"duplicate url", 2}}));

  // A resumed run still recognises pieces of the document.
  const Document first{.text = "t", .record = R"({"text": "t", "url": "http://good.org/a", "piece_of": 4})"};
  const Document other{.text = "t", .record = R"({"text": "t", "url": "http://good.org/a", "piece_of": 9})"};
  const auto before = make_clean_stage(rules), after = make_clean_stage(rules);
  EXPECT_FALSE(before->admit(first));
  after->restore_state(before->take_state_delta());
  EXPECT_FALSE(after->admit(first));
  EXPECT_TRUE(after->admit(other));
}

TEST_F(CleanStage, TellsPagesApartByPortsAndByHostsThatAreAllWww) {
  EXPECT_THAT(kept_of({"http://good.org/a", "http://good.org:8080/a", "https://good.org:8443/a",
                       "https://good.org:443/a", "http://good.org:/a", "http://good.org:0080/a",
                       "http://good.org:443/a", "http://u:p@good.org:8080/a", "http://www.de/page",
                       "http://www.www.de/page", "http://www.good.de/page", "http://good.de/page", "http://www./page"}),
              ElementsAre(0, 1, 2, 6, 8, 10));
  EXPECT_EQ(counts_.stages[0].dropped,
            (std::map<std::string, std::int64_t>{{"malformed url", 1}, {"duplicate url", 6}}));
}

TEST(CleanSettings, NameTheListsThatAreRead) {
  EXPECT_THAT(CleanSettings{}.files_read(), ElementsAre(installed_url_lists()));
  EXPECT_FALSE(installed_url_lists().empty());
  CleanSettings some;
  some.url_lists = "lists";
  EXPECT_THAT(some.files_read(), ElementsAre("lists"));
  some.no_url_rules = true;
  EXPECT_THAT(some.files_read(), ElementsAre());
}

TEST_F(CleanStage, DocumentsWithoutAnUrlPassTheRulesAboutThem) {
  CleanOptions rules{.min_tokens = 0};
  rules.url_rules.emplace(lists());
  EXPECT_THAT(through(stages_of(make_clean_stage(std::move(rules))), {"a", "a"}), ElementsAre("a", "a"));
}

TEST_F(CleanStage, ListsNameDomainsAsAddressesAreCompared) {
  lists();
  write_file_atomically(folder_ / "domains.txt", "\xEF\xBB\xBFwww.first.org\nWWW.Second.org\nwww.uk\n");
  const UrlRules rules(folder_.path());
  for (const char* url : {"http://first.org/", "https://www.first.org/a", "http://a.second.org", "http://www.uk/"}) {
    EXPECT_EQ(rules.judge(url).value_or(Drop{}).reason, "domain") << url;
  }
  EXPECT_FALSE(rules.judge("http://third.org/"));
}

TEST_F(CleanStage, ListsThatAreNoneAreErrors) {
  EXPECT_THROW(UrlRules{folder_.path()}, UserError);
  lists();
  write_file_atomically(folder_ / "domains.txt", "a.org\nhttp://b.org/\n");
  EXPECT_THAT(message_of<UserError>([&] { UrlRules{folder_.path()}; }), HasSubstr("domains.txt:2"));
  lists();
  write_file_atomically(folder_ / "extensions.txt", "jpg\ntar.gz\n");
  EXPECT_THAT(message_of<UserError>([&] { UrlRules{folder_.path()}; }), HasSubstr("the last one: gz"));
}

TEST(UrlLists, ThoseThatComeWithTheProgramCanBeRead) {
  const UrlRules rules(std::string(TERATRON_SOURCE_DIR) + "/configs/url-lists");
  EXPECT_EQ(rules.judge("https://i.imgur.com/a").value_or(Drop{}).reason, "domain");
  EXPECT_EQ(rules.judge("https://example.org/a.png").value_or(Drop{}).reason, "extension");
  EXPECT_FALSE(rules.judge("https://example.org/a.html"));
}

}  // namespace
}  // namespace teratron::testing
