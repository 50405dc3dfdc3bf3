#include "corpus/extract/html_simplifier.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "corpus/extract/html_names.h"
#include "corpus/extract/html_scanner.h"
#include "corpus/extract/open_elements.h"

namespace teratron {
namespace {

// Each "<" in the output begins a tag that was read here, so the parser sees only tags that are counted.
class HtmlSimplifier {
 public:
  explicit HtmlSimplifier(std::string_view html) : html_(html) { out_.reserve(html.size()); }

  std::variant<std::string, HtmlRefusal> simplify() {
    while (at_ < html_.size()) {
      const std::size_t begin = std::min(html_.find('<', at_), html_.size());
      write(html_.substr(at_, begin - at_));
      at_ = begin;
      if (at_ < html_.size()) read_markup();
      if (open_.depth() > kDeepestHtml || std::ssize(foreign_) > kDeepestHtml) {
        return HtmlRefusal{"too deep", fmt::format("tags nest more than {} deep", kDeepestHtml)};
      }
      if (work_ > kMostWork) {
        return HtmlRefusal{"too deep",
                           fmt::format("hundreds of elements are open at most of its {} bytes", html_.size())};
      }
    }
    return std::move(out_);
  }

 private:
  // An open element of SVG or MathML: svg, math, or one that contains HTML.
  struct Foreign {
    std::string name;
    bool holds_html;
  };

  bool is_hidden() const { return is_in_select_ || !foreign_.empty(); }
  bool is_foreign() const { return !foreign_.empty() && !foreign_.back().holds_html; }

  void write(std::string_view text) {
    if (!is_hidden()) out_ += text;
  }
  void write_escaped(std::string_view text, bool escapes_references) {
    const std::string_view escaped = escapes_references ? "<&" : "<";
    while (!text.empty()) {
      const std::size_t plain = std::min(text.find_first_of(escaped), text.size());
      write(text.substr(0, plain));
      if (plain == text.size()) return;
      write(text[plain] == '<' ? "&lt;" : "&amp;");
      text.remove_prefix(plain + 1);
    }
  }

  void read_markup() {
    const std::string_view rest = html_.substr(at_, 12);
    const char second = rest.size() > 1 ? rest[1] : ' ', third = rest.size() > 2 ? rest[2] : ' ';
    if (is_ascii_letter(second) || (second == '/' && is_ascii_letter(third))) {
      read_tag();
    } else if (rest.starts_with("<!--")) {
      at_ = end_of_comment(html_, at_);
    } else if (rest.starts_with("<![CDATA[") && is_foreign()) {
      const std::size_t end = html_.find("]]>", at_);
      at_ = end == html_.npos ? html_.size() : end + 3;
    } else if (second == '!' || second == '?' || (second == '/' && rest.size() > 2)) {
      const std::size_t end = end_of_declaration(html_, at_);
      first_tag_ = std::min(out_.find('<', first_tag_), out_.size());
      const bool is_doctype = begins_ignoring_case(rest, "<!doctype") && html_[end - 1] == '>';
      if (is_doctype && first_tag_ == out_.size()) write(html_.substr(at_, end - at_));
      at_ = end;
    } else {
      write("&lt;");
      ++at_;
    }
  }

  void read_tag() {
    scan_tag(html_, at_, tag_);
    if (tag_.end == 0) {
      at_ = html_.size();
      return;
    }
    at_ = tag_.end;
    if (is_in_select_ && stays_in_select()) return;
    if (!foreign_.empty() && stays_in_foreign()) return;
    if (html::is_without_text(tag_.name)) return;
    if (tag_.is_end) {
      if (tag_.name == "svg" || tag_.name == "math" || tag_.name == "select") return;
      if (html::holds_raw_text(tag_.name) || tag_.name == "plaintext") return;
      open_.end(tag_.name);
      count_work();
      write("</");
      write(tag_.name);
      write(">");
    } else {
      read_start_tag();
    }
  }

  void read_start_tag() {
    if (tag_.name == "svg" || tag_.name == "math") {
      if (!tag_.closes_itself) foreign_.push_back({.name = tag_.name, .holds_html = false});
    } else if (tag_.name == "select") {
      is_in_select_ = true;
    } else if (tag_.name == "plaintext") {
      write("<pre>");
      write_escaped(html_.substr(at_), /*escapes_references=*/true);
      at_ = html_.size();
    } else if (html::holds_raw_text(tag_.name)) {
      read_raw_text();
    } else {
      open_.start(tag_.name);
      count_work();
      write("<");
      write(tag_.name);
      for (std::size_t i = 0; i < tag_.attribute_count; ++i) {
        write(" ");
        write(tag_.attributes[i]);
      }
      write(">");
    }
  }

  // Work of a parser for a tag: it searches the open elements, compares formatting with all open formatting, and each
  // attribute with each.
  void count_work() {
    work_ += open_.depth();
    if (tag_.is_end || !html::is_formatting(tag_.name)) return;
    const auto attributes = static_cast<std::int64_t>(tag_.attribute_count);
    work_ += open_.formatting() * attributes * attributes;
  }

  // Writes titles and text whose content is shown as it is.
  void read_raw_text() {
    const std::string name = tag_.name;
    const std::size_t end = end_of_raw_text(html_, at_, name);
    const std::string_view text = html_.substr(at_, end - at_);
    if (name == "xmp" && !is_hidden()) {
      open_.start("pre");
      open_.end("pre");
    }
    if (name == "title" || name == "xmp") {
      write(name == "title" ? "<title>" : "<pre>");
      write_escaped(text, /*escapes_references=*/name == "xmp");
      write(name == "title" ? "</title>" : "</pre>");
    }
    at_ = end;
    if (end == html_.size()) return;
    scan_tag(html_, end, tag_);
    at_ = tag_.end == 0 ? html_.size() : tag_.end;
  }

  // Most tags in a <select> are ignored.
  bool stays_in_select() {
    const bool is_select = tag_.name == "select";
    const bool ends_it = !tag_.is_end && (tag_.name == "input" || tag_.name == "keygen" || tag_.name == "textarea");
    const bool is_of_table = open_.has_table() && html::is_of_table(tag_.name);
    if (is_select || ends_it || is_of_table) is_in_select_ = false;
    if (!tag_.is_end && tag_.name == "script") read_raw_text();
    return !ends_it && !is_of_table;
  }

  bool stays_in_foreign() {
    if (tag_.is_end) {
      const auto same = std::ranges::find(foreign_.rbegin(), foreign_.rend(), tag_.name, &Foreign::name);
      if (same != foreign_.rend()) foreign_.erase(same.base() - 1, foreign_.end());
      return true;
    }
    if (is_foreign() && html::ends_foreign_content(tag_.name)) {
      while (is_foreign()) foreign_.pop_back();
      return !foreign_.empty();
    }
    const bool is_root = tag_.name == "svg" || tag_.name == "math";
    const bool holds_html = is_foreign() && html::holds_html_in_foreign(tag_.name);
    if ((is_root || holds_html) && !tag_.closes_itself) {
      foreign_.push_back({.name = tag_.name, .holds_html = holds_html});
    } else if (!is_foreign() && html::holds_raw_text(tag_.name)) {
      read_raw_text();
    }
    return true;
  }

  static constexpr std::int64_t kMostWork = std::int64_t{1} << 28;  // at most a second

  std::string_view html_;
  std::size_t at_ = 0, first_tag_ = 0;  // in the page; in what is written, not before this offset
  std::int64_t work_ = 0;
  HtmlTag tag_;
  OpenElements open_;
  std::vector<Foreign> foreign_;
  bool is_in_select_ = false;
  std::string out_;
};

}  // namespace

std::variant<std::string, HtmlRefusal> simplify_html(std::string_view html) { return HtmlSimplifier(html).simplify(); }

}  // namespace teratron
