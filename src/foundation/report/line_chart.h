// Line charts over a logarithmic x axis as SVG pictures.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace teratron::svg {

struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;       // x > 0, ascending; y >= y_least
    std::vector<std::pair<double, double>> spread = {};  // least and largest y at each point; empty: not drawn
  };
  std::string title, x_axis, y_axis;
  std::vector<Line> lines;
  double y_least = 0;  // beginning of the y axis
};

// Draws the chart. It marks every point, and labels every x that has room. InternalError: a coordinate is out of range.
std::string to_svg(const LineChart& chart);

}  // namespace teratron::svg
