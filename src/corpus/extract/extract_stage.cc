#include "corpus/extract/extract_stage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "corpus/extract/article.h"
#include "corpus/extract/charset.h"
#include "corpus/extract/find_encoding.h"
#include "corpus/extract/html_tree.h"
#include "corpus/extract/http_response.h"
#include "corpus/extract/page_blocks.h"
#include "corpus/extract/page_source.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

// Gumbo's tree of a page takes some times the page's size; of one that is made to blow up, any amount.
constexpr std::size_t kTreeBytesPerByte = 64, kTreeBytesAtLeast = std::size_t{64} << 20;

class ExtractStage final : public Stage {
 public:
  explicit ExtractStage(ExtractOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "extract"; }

  std::vector<std::filesystem::path> find_files(std::span<const std::filesystem::path> named) const override {
    return find_page_files(named);
  }
  std::unique_ptr<DocumentSource> open(const std::vector<std::filesystem::path>& files, TextFormat format,
                                       std::int64_t batch_bytes, const InputPosition& from) const override {
    return open_pages(
        files, format,
        {.html_key = options_.html_key, .most_page_bytes = options_.most_page_bytes, .batch_bytes = batch_bytes}, from,
        counts_);
  }

  StageOutput process(Document document) const override {
    const std::string_view response = document.text;
    const std::optional<HttpHead> head = parse_http_head(response);
    if (!head) return dropped("bad http", "it does not begin as a response of HTTP does");
    if (head->status != 200) return dropped("status", std::to_string(head->status));
    if (!head->is_page()) return dropped("not html", head->media_type.empty() ? "no type is said" : head->media_type);
    const auto most = static_cast<std::size_t>(options_.most_page_bytes);
    // More than this was not read.
    if (response.size() - head->bytes > most) return dropped("too large", fmt::format("more than {} bytes", most));
    HttpBody body = decode_http_body(*head, response.substr(head->bytes), most);
    if (!body.reason.empty()) return dropped(std::move(body.reason), std::move(body.detail));
    const std::string page = to_utf8(body.bytes, find_encoding(body.bytes, head->charset));
    const auto parsed = parse_html(page, kTreeBytesAtLeast + kTreeBytesPerByte * page.size());
    if (const auto* refused = std::get_if<HtmlRefusal>(&parsed)) return dropped(refused->reason, refused->detail);
    const HtmlTree& tree = std::get<HtmlTree>(parsed);
    Article article = find_article(tree, options_.least_characters);
    if (article.text.empty()) {
      return dropped("no article", fmt::format("{} characters of sentences", article.characters));
    }
    document.record = record_of(document.record, article.text, tree);
    document.text = std::move(article.text);
    return kept(std::move(document));
  }

  // How many records of each type were read since the last call.
  std::string take_news() override {
    Json news = Json::object();
    for (const auto& [type, count] : *counts_) {
      if (const std::int64_t more = count - std::exchange(told_counts_[type], count); more > 0) news[type] = more;
    }
    return news.empty() ? "" : news.dump();
  }
  void remember(std::string_view news) override {
    for (const auto& [type, count] : Json::parse(news).get<RecordCounts>()) {
      (*counts_)[type] += count;
      told_counts_[type] = (*counts_)[type];
    }
  }

  std::vector<Fact> facts() const override {
    std::vector<Fact> facts;
    for (const auto& [type, count] : *counts_) facts.push_back({"records: " + type, count});
    return facts;
  }

 private:
  // The text before all other members; the page's HTML is left out.
  std::string record_of(const std::string& before, const std::string& text, const HtmlTree& tree) const {
    std::string record = "{";
    append_json_string(options_.text_key, record);
    record += ": ";
    append_json_string(text, record);
    const auto add_key = [&](std::string_view key) {
      record += ", ";
      append_json_string(key, record);
      record += ": ";
    };
    bool has_title = false, has_url = false;
    visit_members(before, [&](const std::string& key, std::string_view value) {
      if (key == options_.html_key || key == options_.text_key) return true;
      has_title |= key == "title";
      has_url |= key == "url";
      add_key(key);
      record += value;
      return true;
    });
    if (!has_url && (tree.canonical.starts_with("http://") || tree.canonical.starts_with("https://"))) {
      add_key("url");
      append_json_string(tree.canonical, record);
    }
    if (!has_title && !tree.title.empty()) {
      add_key("title");
      append_json_string(tree.title, record);
    }
    return record + "}";
  }

  ExtractOptions options_;
  std::shared_ptr<RecordCounts> counts_ = std::make_shared<RecordCounts>();
  RecordCounts told_counts_;  // in the news
};

}  // namespace

std::unique_ptr<Stage> make_extract_stage(ExtractOptions options) {
  return std::make_unique<ExtractStage>(std::move(options));
}

}  // namespace teratron
