#include "report/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/svg.h"

namespace teratron::svg {
namespace {

// Pixels. The picture is wider if the numbers above bars need it.
constexpr double kLeastBarsWidth = 720, kBarsHeight = 300, kBarsLeft = 60, kBarsRight = 20, kBarsTop = 64,
                 kBarsBottom = 40;

double largest_value(const BarChart& chart) {
  double largest = 0;
  for (const BarChart::Group& group : chart.groups) {
    for (const double value : group.values) largest = std::max(largest, value);
  }
  return largest > 0 ? largest : 1;
}

std::string text_of_bar(double value) { return fmt::format("{:.2f}", value); }

constexpr int kValueSize = 11;
constexpr double kBarsShare = 0.8;  // of a group's width

// Width of the picture. Bars are at least as wide as the widest number above one, groups as their labels.
double width_of(const BarChart& chart) {
  double bar = 0, group = 0;
  for (const BarChart::Group& one : chart.groups) {
    for (const double value : one.values) bar = std::max(bar, text_width(text_of_bar(value), kValueSize));
    group = std::max(group, text_width(one.label, kValueSize));
  }
  group = std::max(group, bar * static_cast<double>(chart.series.size()) / kBarsShare);
  return std::max(kLeastBarsWidth, kBarsLeft + kBarsRight + group * static_cast<double>(chart.groups.size()));
}

void draw_legend(Drawing& drawing, const BarChart& chart, double top) {
  double x = kBarsLeft;
  for (std::size_t series = 0; series < chart.series.size(); ++series) {
    const double y = top + 38;
    drawing.rectangle(x, y - 9, 10, 10, series_color(series));
    drawing.text(x + 15, y, Anchor::kStart, 12, chart.series[series]);
    x += 45 + text_width(chart.series[series], 12);
  }
}

void draw(Drawing& drawing, const BarChart& chart, double width, double top) {
  const double floor = top + kBarsHeight - kBarsBottom;
  const double scale = (kBarsHeight - kBarsTop - kBarsBottom) / largest_value(chart);
  const double group_width =
      (width - kBarsLeft - kBarsRight) / static_cast<double>(std::max<std::size_t>(chart.groups.size(), 1));
  const double bar_width =
      kBarsShare * group_width / static_cast<double>(std::max<std::size_t>(chart.series.size(), 1));
  drawing.text(kBarsLeft, top + 20, Anchor::kStart, 15, fmt::format("{} ({})", chart.title, chart.axis));
  draw_legend(drawing, chart, top);
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    const BarChart::Group& group = chart.groups[g];
    const double left = kBarsLeft + (static_cast<double>(g) + 0.1) * group_width;
    for (std::size_t series = 0; series < group.values.size(); ++series) {
      const double height = group.values[series] * scale, x = left + static_cast<double>(series) * bar_width;
      drawing.rectangle(x, floor - height, bar_width, height, series_color(series));
      drawing.text(x + bar_width / 2, floor - height - 4, Anchor::kMiddle, kValueSize,
                   text_of_bar(group.values[series]));
    }
    drawing.text(left + 0.4 * group_width, floor + 16, Anchor::kMiddle, kValueSize, group.label);
  }
}

}  // namespace

std::string to_svg(const std::vector<BarChart>& charts) {
  double width = kLeastBarsWidth;
  for (const BarChart& chart : charts) width = std::max(width, width_of(chart));
  Drawing drawing(width, kBarsHeight * static_cast<double>(charts.size()));
  for (std::size_t i = 0; i < charts.size(); ++i) draw(drawing, charts[i], width, kBarsHeight * static_cast<double>(i));
  return std::move(drawing).finish();
}

}  // namespace teratron::svg
