// A page that stands alone: one HTML file, light or dark as the reader's system, which makes no network request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/curve_chart.h"

namespace teratron {

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  // Begins a section, which the page's list of contents names.
  void section(std::string_view title);
  void paragraph(std::string_view text);
  // Adds HTML. Texts in it come from svg::escaped().
  void html(std::string_view html) { sections_.back().html += html; }
  // A table whose first column names its rows. `caption` may be empty.
  void table(std::string_view caption, const std::vector<std::string>& head,
             const std::vector<std::vector<std::string>>& rows);
  // Charts side by side where there is room. Pointer and arrow keys show values.
  void charts(const std::vector<svg::CurveChart>& charts);
  // Names beside the colours of curves.
  void legend(const std::vector<std::string>& names);
  // Begins a fold. What is added before end_fold() is shown at a click.
  void begin_fold(std::string_view summary);
  void end_fold() { html("</details>\n"); }

  std::string finish() const;

 private:
  struct Section {
    std::string title, html;
  };
  std::string title_;
  std::vector<Section> sections_;
};

// Text of JSON for a <script>, without the character that could end that.
std::string within_script(std::string json);

// Beginning of every page, by which an earlier page is recognised.
inline constexpr std::string_view kPageBeginning = "<!doctype html>\n<!-- teratron -->";

}  // namespace teratron
