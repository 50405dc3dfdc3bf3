// Line charts over a logarithmic x axis as SVG pictures.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace teratron::svg {

struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;       // x > 0, ascending
    std::vector<std::pair<double, double>> spread = {};  // least and largest y at each point; empty: not drawn
  };
  std::string title, x_axis, y_axis;
  std::vector<Line> lines;
  std::optional<double> y_least;  // beginning of the y axis; nothing: the round value below all points
};

// Draws the chart. It marks every point, and labels every x that has room. InternalError: a coordinate is out of range,
// or below y_least.
std::string to_svg(const LineChart& chart);

}  // namespace teratron::svg
