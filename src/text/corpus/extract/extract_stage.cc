#include "corpus/extract/extract_stage.h"

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_string.h"
#include "corpus/extract/article.h"
#include "corpus/extract/body_kind.h"
#include "corpus/extract/charset.h"
#include "corpus/extract/find_encoding.h"
#include "corpus/extract/html_tree.h"
#include "corpus/extract/http_response.h"
#include "corpus/extract/page_blocks.h"
#include "corpus/extract/page_source.h"
#include "data/text/json_members.h"

namespace teratron {
namespace {

// Gumbo's tree of a page takes a few times the page's size; of a page made for it, any amount.
constexpr std::size_t kTreeBytesPerByte = 64, kTreeBytesAtLeast = std::size_t{64} << 20;

constexpr std::string_view kRecords = "records: ", kFlaws = "kept though damaged: ";  // prefixes of counts

// The kind of a body that is no page; empty if it may be one. The crawler's judgement counts where the body shows
// nothing.
std::string what_else_it_is(const HttpHead& head, std::string_view body) {
  if (const std::string_view format = file_format_of(body); !format.empty()) return std::string(format);
  if (!can_be_text(body)) return "bytes that are no text";
  const std::string_view type = head.seen_type;
  const bool is_text = type.empty() || type.starts_with("text/") || type.find("xml") != type.npos ||
                       type.find("html") != type.npos || type.find("json") != type.npos ||
                       type.find("script") != type.npos || type == "application/octet-stream";
  return is_text || begins_with_markup(body) ? "" : head.seen_type;
}

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
    // The source reads at most one byte more than the limit.
    if (response.size() - head->bytes > most) return dropped("too large", fmt::format("more than {} bytes", most));
    UnpackedBody body = decode_http_body(*head, response.substr(head->bytes), most);
    if (!body.reason.empty()) return dropped(std::move(body.reason), std::move(body.detail));
    if (std::string kind = what_else_it_is(*head, body.bytes); !kind.empty()) {
      return dropped("not a page", std::move(kind));
    }
    const std::string page = to_utf8(body.bytes, find_encoding(body.bytes, head->charset));
    if (is_garbage(page)) return dropped("not a page", "text in no known encoding, or no text");
    if (head->says_nothing() && !begins_as_html(page)) return dropped("not html", "no type is said");
    const auto parsed = parse_html(page, kTreeBytesAtLeast + kTreeBytesPerByte * page.size());
    if (const auto* refused = std::get_if<HtmlRefusal>(&parsed)) return dropped(refused->reason, refused->detail);
    const HtmlTree& tree = std::get<HtmlTree>(parsed);
    Article article = find_article(tree, options_.least_characters);
    if (article.text.empty()) {
      return dropped("no article", fmt::format("{} characters of sentences", article.characters));
    }
    if (!begins_with_markup(page) && is_program(article.text)) {
      return dropped("not a page", "a script or a style sheet");
    }
    if (is_encoded_data(article.text)) return dropped("not a page", "base64 or other data, written as text");
    if (is_garbage(article.text)) return dropped("not a page", "an article in no known encoding, or no text");
    if (!body.flaw.empty()) count_flaw(body.flaw);
    document.record = record_of(document.record, article.text, tree);
    document.text = std::move(article.text);
    return kept(std::move(document));
  }

  // The counts of each kind since the last call.
  std::string take_state_delta() override {
    nlohmann::json delta = nlohmann::json::object();
    for (const auto& [name, count] : counts()) {
      if (const std::int64_t more = count - std::exchange(saved_counts_[name], count); more > 0) delta[name] = more;
    }
    return delta.empty() ? "" : delta.dump();
  }
  void restore_state(std::string_view delta) override {
    for (const auto& [name, count] : nlohmann::json::parse(delta).get<RecordCounts>()) {
      if (name.starts_with(kRecords)) (*counts_)[name.substr(kRecords.size())] += count;
      if (name.starts_with(kFlaws)) flaws_[name.substr(kFlaws.size())] += count;
      saved_counts_[name] += count;
    }
  }

  std::vector<Fact> facts() const override {
    std::vector<Fact> facts;
    for (const auto& [name, count] : counts()) facts.push_back({name, count});
    return facts;
  }

 private:
  // WARC records by type, and articles of damaged pages by the damage.
  RecordCounts counts() const {
    RecordCounts all;
    for (const auto& [type, count] : *counts_) all[std::string(kRecords) + type] = count;
    const std::lock_guard lock(flaws_mutex_);
    for (const auto& [flaw, count] : flaws_) all[std::string(kFlaws) + flaw] = count;
    return all;
  }
  void count_flaw(const std::string& flaw) const {
    const std::lock_guard lock(flaws_mutex_);
    ++flaws_[flaw];
  }

  // The text comes before all other members; the page's HTML is left out.
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
  mutable std::mutex flaws_mutex_;
  mutable RecordCounts flaws_;
  RecordCounts saved_counts_;  // counts already in a delta
};

}  // namespace

std::unique_ptr<Stage> make_extract_stage(ExtractOptions options) {
  return std::make_unique<ExtractStage>(std::move(options));
}

}  // namespace teratron
