#include "report/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace teratron {
namespace {

// Pixels.
constexpr double kWidth = 720, kHeight = 300, kLeft = 60, kRight = 20, kTop = 50, kBottom = 50;
constexpr std::array<const char*, 4> kColors = {"#3b6ea5", "#c8a24a", "#6a9955", "#a0522d"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string text_at(double x, double y, const char* anchor, int size, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor,
                     size, escaped(text));
}

std::string bar(double x, double y, double width, double height, std::size_t series) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                     height, kColors[series % kColors.size()]);
}

double largest_value(const BarChart& chart) {
  double largest = 0;
  for (const BarChart::Group& group : chart.groups) {
    for (const double value : group.values) largest = std::max(largest, value);
  }
  return largest > 0 ? largest : 1;
}

std::string legend(const BarChart& chart, double top) {
  std::string svg;
  for (std::size_t series = 0; series < chart.series.size(); ++series) {
    const double x = kLeft + 150.0 * static_cast<double>(series), y = top + 32;
    svg += bar(x, y - 9, 10, 10, series) + text_at(x + 15, y, "start", 12, chart.series[series]);
  }
  return svg;
}

std::string draw(const BarChart& chart, double top) {
  const double floor = top + kHeight - kBottom, scale = (kHeight - kTop - kBottom) / largest_value(chart);
  const double group_width =
      (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(chart.groups.size(), 1));
  const double bar_width = 0.8 * group_width / static_cast<double>(std::max<std::size_t>(chart.series.size(), 1));
  std::string svg =
      text_at(kLeft, top + 15, "start", 15, fmt::format("{} ({})", chart.title, chart.axis)) + legend(chart, top);
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    const BarChart::Group& group = chart.groups[g];
    const double left = kLeft + (static_cast<double>(g) + 0.1) * group_width;
    for (std::size_t series = 0; series < group.values.size(); ++series) {
      const double height = group.values[series] * scale, x = left + static_cast<double>(series) * bar_width;
      svg += bar(x, floor - height, bar_width, height, series);
      svg += text_at(x + bar_width / 2, floor - height - 4, "middle", 11, fmt::format("{:.2f}", group.values[series]));
    }
    svg += text_at(left + 0.4 * group_width, floor + 16, "middle", 11, group.label);
  }
  return svg;
}

}  // namespace

std::string to_svg(const std::vector<BarChart>& charts) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight * static_cast<double>(charts.size()));
  for (std::size_t i = 0; i < charts.size(); ++i) svg += draw(charts[i], kHeight * static_cast<double>(i));
  return svg + "</svg>\n";
}

}  // namespace teratron
