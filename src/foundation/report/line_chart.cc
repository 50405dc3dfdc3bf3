#include "report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "report/svg.h"

namespace teratron::svg {
namespace {

// Pixels. kTitleColumn is the column of the y axis's title, which reads upwards.
constexpr double kLinesWidth = 560, kLinesHeight = 380, kLinesTop = 40, kLinesBottom = 84, kLinesRight = 24;
constexpr double kTitleColumn = 26, kLabelGap = 8, kLegendRow = 18;
constexpr int kLabelSize = 12, kTitleSize = 14, kLeastTitleSize = 10;

class LinePlot {
 public:
  explicit LinePlot(const LineChart& chart)
      : chart_(chart),
        legend_(legend_of(chart)),
        drawing_(kLinesWidth, kLinesHeight + kLegendRow * legend_.back().row) {
    std::vector<double> ys;
    for (const LineChart::Line& line : chart.lines) {
      check(line.spread.empty() || line.spread.size() == line.points.size(), "a line chart's spread is of every point");
      for (const auto& [x, y] : line.points) {
        if (!(x > 0 && std::isfinite(x))) throw InternalError("a line chart takes finite x above 0");
        xs_.insert(x);
        ys.push_back(y);
      }
      for (const auto& [low, high] : line.spread) ys.insert(ys.end(), {low, high});
    }
    for (const double y : ys) {
      if (!std::isfinite(y) || y < chart.y_least.value_or(y)) {
        throw InternalError("a line chart takes finite y from where its axis begins");
      }
    }
    if (ys.empty()) ys.push_back(chart.y_least.value_or(0));
    const auto [low, high] = std::ranges::minmax_element(ys);
    set_heights(*low, *high);
    y_labels_ = tick_labels(y_ticks_);
    for (const std::string& label : y_labels_) {
      left_ = std::max(left_, kTitleColumn + text_width(label, kLabelSize) + kLabelGap);
    }
  }

  std::string draw() && {
    int size = kTitleSize;
    while (size > kLeastTitleSize && text_width(chart_.title, size) > kLinesWidth) --size;
    drawing_.text(kLinesWidth / 2, 22, Anchor::kMiddle, size, chart_.title);
    draw_y_axis();
    draw_x_axis();
    draw_legend();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_line(chart_.lines[i], series_color(i));
    return std::move(drawing_).finish();
  }

 private:
  struct LegendPlace {
    double x = kTitleColumn;
    int row = 0;
  };

  // Beginning and ticks of the y axis.
  void set_heights(double low, double high) {
    constexpr int kMost = 5;
    double step = ticks(high - chart_.y_least.value_or(low), kMost)[1];
    least_ = chart_.y_least.value_or(std::floor(low / step) * step);
    // A step for values from the axis's beginning on may be larger, and begins elsewhere.
    for (double next = step; !chart_.y_least && (next = ticks(high - least_, kMost)[1]) > step;) {
      step = next;
      least_ = std::floor(low / step) * step;
    }
    for (int i = 0; i < 2 || y_ticks_.back() < high - 1e-9 * step; ++i) y_ticks_.push_back(least_ + i * step);
  }

  // Legend positions of all lines, and the end's. A name without room begins a row.
  static std::vector<LegendPlace> legend_of(const LineChart& chart) {
    std::vector<LegendPlace> places(1);
    for (const LineChart::Line& line : chart.lines) {
      const double width = 30 + text_width(line.name, kLabelSize);
      LegendPlace& place = places.back();
      if (place.x > kTitleColumn && place.x + width > kLinesWidth) place = {.x = kTitleColumn, .row = place.row + 1};
      places.push_back({.x = place.x + width, .row = place.row});
    }
    return places;
  }

  static constexpr double kFloor = kLinesHeight - kLinesBottom;

  double across(double x) const {
    const double low = std::log2(*xs_.begin()), high = std::log2(*xs_.rbegin());
    const double part = high > low ? (std::log2(x) - low) / (high - low) : 0.5;
    return left_ + part * (kLinesWidth - kLinesRight - left_);
  }
  double up(double y) const { return kFloor - (y - least_) / (y_ticks_.back() - least_) * (kFloor - kLinesTop); }

  void draw_y_axis() {
    for (std::size_t i = 0; i < y_ticks_.size(); ++i) {
      const double y = up(y_ticks_[i]);
      drawing_.line(left_, y, kLinesWidth - kLinesRight, y, "#e5e7eb");
      drawing_.text(left_ - kLabelGap, y + 4, Anchor::kEnd, kLabelSize, y_labels_[i]);
    }
    drawing_.text_upwards(16, (kLinesTop + kFloor) / 2, kLabelSize, chart_.y_axis);
  }

  void draw_x_axis() {
    const std::vector<double> values(xs_.begin(), xs_.end());
    const std::vector<std::string> labels = tick_labels(values);
    double free_from = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = across(values[i]), half = text_width(labels[i], kLabelSize) / 2;
      if (x - half < free_from) continue;
      drawing_.text(x, kFloor + 18, Anchor::kMiddle, kLabelSize, labels[i]);
      free_from = x + half + 4;
    }
    drawing_.text((left_ + kLinesWidth - kLinesRight) / 2, kFloor + 40, Anchor::kMiddle, kLabelSize, chart_.x_axis);
  }

  void draw_legend() {
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) {
      const auto [x, row] = legend_[i];
      const double y = kLinesHeight - 16 + kLegendRow * row;
      drawing_.circle(x, y, 4, series_color(i));
      drawing_.text(x + 9, y + 4, Anchor::kStart, kLabelSize, chart_.lines[i].name);
    }
  }

  void draw_line(const LineChart::Line& line, std::string_view color) {
    std::vector<std::pair<double, double>> pixels;
    for (const auto& [x, y] : line.points) pixels.emplace_back(across(x), up(y));
    for (std::size_t i = 0; i < line.spread.size(); ++i) {
      drawing_.line(pixels[i].first, up(line.spread[i].first), pixels[i].first, up(line.spread[i].second), color);
    }
    if (pixels.size() > 1) drawing_.polyline(pixels, color);
    for (const auto& [x, y] : pixels) drawing_.circle(x, y, 4, color);
  }

  const LineChart& chart_;
  std::vector<LegendPlace> legend_;
  Drawing drawing_;
  std::set<double> xs_;
  std::vector<double> y_ticks_;
  std::vector<std::string> y_labels_;
  double left_ = 0, least_ = 0;  // where the x and the y axis begin, in pixels and as a value
};

}  // namespace

std::string to_svg(const LineChart& chart) { return LinePlot(chart).draw(); }

}  // namespace teratron::svg
