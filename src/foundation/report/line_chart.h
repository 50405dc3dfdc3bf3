// Lines over a logarithmic x axis as an SVG picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace teratron::svg {

struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;       // x, from left to right, above 0; y, at least y_least
    std::vector<std::pair<double, double>> spread = {};  // the least and the largest y at each point; empty: not shown
  };
  std::string title, x_axis, y_axis;
  std::vector<Line> lines;
  double y_least = 0;  // where the y axis begins
};

// Every point is marked, and every x labelled where there is room. InternalError where a coordinate is out of its
// range.
std::string to_svg(const LineChart& chart);

}  // namespace teratron::svg
