#include "telemetry/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace teratron {
namespace {

// Pixels.
constexpr double kWidth = 340, kHeight = 260, kLeft = 52, kRight = 14, kTop = 34, kBottom = 44;
constexpr int kSteps = 5;  // of the y axis
constexpr std::array kColours = {"#1f5fa8", "#b5482a", "#3b8247", "#77529e"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '<') out += "&lt;";
    if (byte == '>') out += "&gt;";
    if (byte == '&') out += "&amp;";
    if (byte != '<' && byte != '>' && byte != '&') out += byte;
  }
  return out;
}

// The step between marks of an axis that reaches `most` in about kSteps of them: 1, 2 or 5 times a power of ten.
double nice_step(double most) {
  const double rough = std::max(most, 1e-9) / kSteps;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const Chart& chart, double left) : chart_(chart), left_(left) {
    for (const ChartLine& line : chart.lines) {
      marks_.insert(line.x.begin(), line.x.end());
      for (const double y : line.y) most_y_ = std::max(most_y_, y);
    }
    step_ = nice_step(most_y_);
    most_y_ = std::ceil(most_y_ / step_ + 1e-9) * step_;
    if (!marks_.empty()) most_x_ = *marks_.rbegin() * 1.05;
  }

  std::string svg() {
    text(kLeft, 18, "start", "bold", chart_.title);
    text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", "normal", chart_.x_label);
    text(6, kTop - 4, "start", "normal", chart_.y_label);
    for (int i = 0; i * step_ <= most_y_ * (1 + 1e-9); ++i) {
      const double value = i * step_;
      segment(kLeft, y(value), kWidth - kRight, y(value), "#dddddd");
      text(kLeft - 6, y(value) + 4, "end", "normal", fmt::format("{:g}", value));
    }
    for (const double value : marks_)
      text(x(value), kHeight - kBottom + 16, "middle", "normal", fmt::format("{:g}", value));
    segment(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "#444444");
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw(chart_.lines[i], i);
    return std::move(svg_);
  }

 private:
  double x(double value) const { return kLeft + value / most_x_ * (kWidth - kLeft - kRight); }
  double y(double value) const { return kHeight - kBottom - value / most_y_ * (kHeight - kTop - kBottom); }

  void text(double at_x, double at_y, const char* anchor, const char* weight, const std::string& content) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-weight=\"{}\">{}</text>\n",
                        left_ + at_x, at_y, anchor, weight, escaped(content));
  }
  void segment(double x1, double y1, double x2, double y2, const char* colour) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", left_ + x1,
                        y1, left_ + x2, y2, colour);
  }
  void draw(const ChartLine& line, std::size_t index) {
    const char* const colour = kColours[index % kColours.size()];
    const char* const dashes = line.dashed ? " stroke-dasharray=\"5 4\"" : "";
    std::string points, dots;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const double at_x = left_ + x(line.x[i]), at_y = y(line.y[i]);
      points += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", at_x, at_y, colour);
    }
    svg_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n{}", points,
                        colour, dashes, dots);
    const double legend = kHeight - kBottom - 12 - 15 * static_cast<double>(index);
    svg_ += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"2\"{4}/>\n",
        left_ + kLeft + 8, legend - 4, left_ + kLeft + 34, colour, dashes);
    text(kLeft + 40, legend, "start", "normal", line.name);
  }

  const Chart& chart_;
  double left_, most_x_ = 1, most_y_ = 0, step_ = 1;
  std::set<double> marks_;
  std::string svg_;
};

}  // namespace

std::string svg_of(const std::vector<Chart>& charts) {
  const double width = kWidth * static_cast<double>(std::max<std::size_t>(1, charts.size()));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, kHeight);
  for (std::size_t i = 0; i < charts.size(); ++i) svg += Drawing(charts[i], kWidth * static_cast<double>(i)).svg();
  return svg + "</svg>\n";
}

}  // namespace teratron
