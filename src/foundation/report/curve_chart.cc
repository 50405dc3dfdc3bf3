#include "report/curve_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "report/svg.h"

namespace teratron::svg {
namespace {

// Pixels at the chart's own width; pages scale it.
constexpr double kWidth = 420, kHeight = 250, kTop = 12, kRight = 12, kBottom = 42, kGap = 6;
constexpr int kTextSize = 13;

// Values that differ by a smaller part of their size are drawn as one: their ticks would differ in rounding alone.
constexpr double kOneValue = 1e-9;

// An axis's range, and its ticks within it.
struct Axis {
  double low = 0, high = 1;
  std::vector<double> values;
  std::vector<std::string> labels;

  double part(double value) const { return (value - low) / (high - low); }
};

// `room`: the length of an axis in labels.
Axis axis_of(double low, double high, int room) {
  if (!(low <= high)) return {.values = {0, 1}, .labels = {"0", "1"}};  // no points
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low <= size * kOneValue) {
    const double around = size == 0 ? 1 : size / 10;
    low -= around;
    high += around;
  }
  Axis axis{.low = low, .high = high};
  const double step = ticks(high - low, room)[1];
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    axis.values.push_back(i * step);
  }
  axis.labels = tick_labels(axis.values);
  return axis;
}

class CurvePlot {
 public:
  explicit CurvePlot(const CurveChart& chart) : chart_(chart) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    double low_x = kNone, high_x = -kNone, low_y = kNone, high_y = -kNone;
    for (const CurveChart::Curve& curve : chart.curves) {
      curves_.push_back(drawn(curve.points));
      for (const auto& [x, y] : curve.points) {
        low_x = std::min(low_x, x), high_x = std::max(high_x, x);
        low_y = std::min(low_y, y), high_y = std::max(high_y, y);
      }
    }
    x_ = axis_of(low_x, high_x, 5);
    y_ = axis_of(low_y, high_y, 5);
    double widest = 0;
    for (const std::string& label : y_.labels) widest = std::max(widest, text_width(label, kTextSize));
    left_ = widest + 2 * kGap;
  }

  std::string draw() && {
    add("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" data-left=\"{:.1f}\" data-right=\"{:.1f}\" "
        "data-top=\"{:.1f}\" data-floor=\"{:.1f}\" data-low-x=\"{:.17g}\" data-high-x=\"{:.17g}\" "
        "data-low-y=\"{:.17g}\" data-high-y=\"{:.17g}\">\n",
        kWidth, kHeight, escaped(chart_.title), left_, kWidth - kRight, kTop, kFloor, x_.low, x_.high, y_.low, y_.high);
    draw_axes();
    for (std::size_t i = 0; i < curves_.size(); ++i) draw_spread(curves_[i], chart_.curves[i].color);
    for (std::size_t i = 0; i < curves_.size(); ++i) draw_curve(curves_[i], chart_.curves[i]);
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr double kFloor = kHeight - kBottom;

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Values>(values)...);
  }
  void add_text(double x, double y, const char* anchor, const std::string& text) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor, kTextSize,
        escaped(text));
  }
  double across(double x) const { return left_ + x_.part(x) * (kWidth - kRight - left_); }
  double up(double y) const { return kFloor - y_.part(y) * (kFloor - kTop); }

  void draw_axes() {
    for (std::size_t i = 0; i < y_.values.size(); ++i) {
      const double y = up(y_.values[i]);
      add("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", left_, y, kWidth - kRight,
          y);
      add_text(left_ - kGap, y + 4, "end", y_.labels[i]);
    }
    double free_from = 0;
    for (std::size_t i = 0; i < x_.values.size(); ++i) {
      const double half = text_width(x_.labels[i], kTextSize) / 2;
      const double x = std::min(across(x_.values[i]), kWidth - half);
      if (x - half < free_from) continue;
      add_text(x, kFloor + 18, "middle", x_.labels[i]);
      free_from = x + half + kGap;
    }
    add_text((left_ + kWidth - kRight) / 2, kFloor + 36, "middle", chart_.x_axis);
  }

  void draw_spread(const DrawnCurve& curve, std::size_t color) {
    if (curve.spread.empty()) return;
    add("<polygon class=\"spread c{}\" points=\"", color);
    for (std::size_t i = 0; i < curve.means.size(); ++i) add_point(curve.means[i].first, curve.spread[i].second);
    for (std::size_t i = curve.means.size(); i-- > 0;) add_point(curve.means[i].first, curve.spread[i].first);
    svg_ += "\"/>\n";
  }
  void draw_curve(const DrawnCurve& curve, const CurveChart::Curve& look) {
    add("<polyline class=\"c{}{}\" points=\"", look.color, look.is_dashed ? " dashed" : "");
    for (const auto& [x, y] : curve.means) add_point(x, y);
    svg_ += "\"/>\n";
    constexpr std::size_t kFew = 40;
    if (curve.means.size() > kFew || look.is_dashed) return;
    for (const auto& [x, y] : curve.means) {
      add("<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n", look.color, across(x), up(y));
    }
  }
  void add_point(double x, double y) { add("{:.1f},{:.1f} ", across(x), up(y)); }

  const CurveChart& chart_;
  std::vector<DrawnCurve> curves_;
  Axis x_, y_;
  double left_ = 0;
  std::string svg_;
};

}  // namespace

DrawnCurve drawn(const Points& points, std::size_t most) {
  if (points.size() <= most) return {.means = points};
  DrawnCurve drawn;
  const double low = points.front().first, width = (points.back().first - low) / static_cast<double>(most);
  for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
    const double stretch = std::floor((points[begin].first - low) / width);
    double x = 0, y = 0, least = points[begin].second, largest = least;
    for (; end < points.size() && (end == begin || std::floor((points[end].first - low) / width) == stretch); ++end) {
      x += points[end].first, y += points[end].second;
      least = std::min(least, points[end].second), largest = std::max(largest, points[end].second);
    }
    const auto count = static_cast<double>(end - begin);
    drawn.means.emplace_back(x / count, y / count);
    drawn.spread.emplace_back(least, largest);
  }
  return drawn;
}

std::string to_svg(const CurveChart& chart) { return CurvePlot(chart).draw(); }

}  // namespace teratron::svg
