#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace teratron::svg {
namespace {

std::string_view name_of(Anchor anchor) {
  switch (anchor) {
    case Anchor::kStart: return "start";
    case Anchor::kMiddle: return "middle";
    case Anchor::kEnd: return "end";
  }
  return "start";
}

// Colours on a dark page. Programs that know no such pages take the attributes of the elements.
constexpr std::string_view kDarkStyle =
    "<style>@media (prefers-color-scheme: dark) { .page { fill: #0d1117 } text { fill: #e6edf3 } .label { fill: #000 } "
    "[stroke=\"#e5e7eb\"] { stroke: #3d444d } [stroke=\"white\"] { stroke: #0d1117 } "
    "[fill=\"#e4e4e4\"] { fill: #3d444d } }</style>\n";

struct Unit {
  double size;
  std::string_view suffix;
};

// Numbers below 100,000 have no suffix: plain digits read faster.
Unit unit_for(double largest) {
  constexpr std::array<Unit, 4> kUnits = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  if (largest < 1e5) return {1, ""};
  return *std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& unit) { return largest >= unit.size; });
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

Drawing::Drawing(double width, double height)
    : svg_(
          fmt::format("{}{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\">\n{}<rect class=\"page\" width=\"100%\" "
                      "height=\"100%\" fill=\"white\"/>\n",
                      kBeginning, width, height, kDarkStyle)) {}

void Drawing::text(double x, double y, Anchor anchor, int size, std::string_view text) {
  fmt::format_to(std::back_inserter(svg_),
                 "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y,
                 name_of(anchor), size, escaped(text));
}

void Drawing::label(double x, double y, int size, std::string_view text) {
  fmt::format_to(std::back_inserter(svg_),
                 "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"{}\">{}</text>\n",
                 x, y, size, escaped(text));
}

void Drawing::text_upwards(double x, double y, int size, std::string_view text) {
  fmt::format_to(std::back_inserter(svg_),
                 "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\" font-size=\"{2}\" "
                 "transform=\"rotate(-90 {0:.1f} {1:.1f})\">{3}</text>\n",
                 x, y, size, escaped(text));
}

void Drawing::rectangle(double x, double y, double width, double height, std::string_view fill) {
  fmt::format_to(std::back_inserter(svg_),
                 "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                 height, fill);
}

void Drawing::block(double x, double y, double width, double height, std::string_view fill) {
  fmt::format_to(std::back_inserter(svg_),
                 "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"white\" "
                 "stroke-width=\"0.6\"/>\n",
                 x, y, width, height, fill);
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view color) {
  fmt::format_to(std::back_inserter(svg_),
                 "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2,
                 color);
}

void Drawing::polyline(std::span<const std::pair<double, double>> points, std::string_view color) {
  svg_ += "<polyline points=\"";
  for (const auto& [x, y] : points) fmt::format_to(std::back_inserter(svg_), "{:.1f},{:.1f} ", x, y);
  fmt::format_to(std::back_inserter(svg_), "\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", color);
}

void Drawing::circle(double x, double y, double radius, std::string_view fill) {
  fmt::format_to(std::back_inserter(svg_), "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                 radius, fill);
}

std::string Drawing::finish() && { return std::move(svg_) + "</svg>\n"; }

std::string_view series_color(std::size_t n) {
  constexpr std::array<std::string_view, 8> kColors = {"#3b6ea5", "#c8a24a", "#6a9955", "#a0522d",
                                                       "#7b5ea7", "#2f9e9e", "#d1698c", "#6b7280"};
  return kColors[n % kColors.size()];
}

// DejaVu Sans, one of the widest fonts that browsers take for sans-serif, averages 0.6 em; digits are 0.64.
double text_width(std::string_view text, int size) { return 0.65 * size * static_cast<double>(text.size()); }

std::vector<double> ticks(double largest, int most) {
  const double least_step = (largest > 0 ? largest : 1) / most;
  const double power = std::pow(10, std::floor(std::log10(least_step)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.5, 2.0, 1.0}) {
    // A little less than needed counts, so that 0.3 / 3 is a step of 0.1.
    if (factor * power >= least_step * (1 - 1e-9)) step = factor * power;
  }
  std::vector<double> values = {0};
  while (values.back() < largest * (1 - 1e-9)) values.push_back(step * static_cast<double>(values.size()));
  if (values.size() == 1) values.push_back(step);
  return values;
}

std::vector<std::string> tick_labels(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  const Unit unit = unit_for(largest);
  // The fewest decimals that give every value to a millionth of the largest, and to a thousandth of the least gap.
  double error = 1e-6 * largest;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[i - 1]) error = std::min(error, 1e-3 * std::abs(values[i] - values[i - 1]));
  }
  const auto exact = [&](int decimals) {
    const double power = std::pow(10, decimals);
    return std::ranges::all_of(values, [&](double value) {
      const double scaled = value / unit.size * power;
      return std::abs(scaled - std::round(scaled)) <= error / unit.size * power;
    });
  };
  int decimals = 0;
  while (decimals < 18 && !exact(decimals)) ++decimals;
  std::vector<std::string> labels;
  for (const double value : values) {
    labels.push_back(value == 0 ? "0" : fmt::format("{:.{}f}{}", value / unit.size, decimals, unit.suffix));
  }
  return labels;
}

}  // namespace teratron::svg
