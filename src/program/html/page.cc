#include "html/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "html/page_files.h"
#include "report/svg.h"

namespace teratron {
namespace {

using svg::escaped;

std::string json_of(const svg::CurveChart& chart) {
  std::string text = "[";
  for (const svg::CurveChart::Curve& curve : chart.curves) {
    const std::string name = nlohmann::json(curve.name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    text += fmt::format("{}{{\"name\":{},\"points\":[", text.size() > 1 ? "," : "", name);
    const svg::DrawnCurve shown = svg::drawn(curve.points);
    for (std::size_t i = 0; i < shown.means.size(); ++i) {
      text += fmt::format("{}[{:.7g},{:.6g}]", i > 0 ? "," : "", shown.means[i].first, shown.means[i].second);
    }
    text += "]}";
  }
  text += "]";
  return within_script(std::move(text));
}

std::string row_of(const std::vector<std::string>& cells, bool is_head) {
  std::string row = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const char* const tag = is_head || i == 0 ? "th" : "td";
    row += fmt::format("<{0}{1}>{2}</{0}>", tag,
                       is_head  ? " scope=\"col\""
                       : i == 0 ? " scope=\"row\""
                                : "",
                       escaped(cells[i]));
  }
  return row + "</tr>\n";
}

}  // namespace

std::string within_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;) json.replace(at, 1, "\\u003c");
  return json;
}

HtmlPage::HtmlPage(std::string_view title) : title_(title), sections_(1) {}

void HtmlPage::section(std::string_view title) { sections_.push_back({.title = std::string(title), .html = ""}); }

void HtmlPage::paragraph(std::string_view text) { html(fmt::format("<p>{}</p>\n", escaped(text))); }

void HtmlPage::table(std::string_view caption, const std::vector<std::string>& head,
                     const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\"><table>";
  if (!caption.empty()) text += fmt::format("<caption>{}</caption>", escaped(caption));
  text += "<thead>" + row_of(head, true) + "</thead><tbody>\n";
  for (const std::vector<std::string>& row : rows) text += row_of(row, false);
  html(text + "</tbody></table></div>\n");
}

void HtmlPage::charts(const std::vector<svg::CurveChart>& charts) {
  html("<div class=\"charts\">\n");
  for (const svg::CurveChart& chart : charts) {
    html(
        fmt::format("<figure class=\"chart\" tabindex=\"0\"><figcaption>{}</figcaption>\n{}<output></output>"
                    "<script type=\"application/json\">{}</script></figure>\n",
                    escaped(chart.title), to_svg(chart), json_of(chart)));
  }
  html("</div>\n");
}

void HtmlPage::legend(const std::vector<std::string>& names) {
  html("<ul class=\"legend\">");
  for (std::size_t i = 0; i < names.size(); ++i) {
    html(fmt::format("<li><i class=\"c{}\"></i>{}</li>", i, escaped(names[i])));
  }
  html("</ul>\n");
}

void HtmlPage::begin_fold(std::string_view summary) {
  html(fmt::format("<details><summary>{}</summary>\n", escaped(summary)));
}

std::string HtmlPage::finish() const {
  std::string page = fmt::format(
      "{}\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style></head>\n<body>\n<header><h1>{}</h1>\n",
      kPageBeginning, escaped(title_), text_of(page_files(), "page_style"), escaped(title_));
  page += "<nav aria-label=\"Contents\">";
  for (std::size_t i = 1; i < sections_.size(); ++i) {
    page += fmt::format("<a href=\"#s{}\">{}</a>", i, escaped(sections_[i].title));
  }
  page += "</nav></header>\n<main>\n" + sections_.front().html;
  for (std::size_t i = 1; i < sections_.size(); ++i) {
    page += fmt::format("<section id=\"s{}\"><h2>{}</h2>\n{}</section>\n", i, escaped(sections_[i].title),
                        sections_[i].html);
  }
  return page + fmt::format("</main>\n<script>{}</script>\n</body></html>\n", text_of(page_files(), "page_script"));
}

}  // namespace teratron
