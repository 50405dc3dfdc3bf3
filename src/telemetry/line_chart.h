// Small line charts side by side, as one SVG picture (https://www.w3.org/TR/SVG11) that any browser shows.
#pragma once

#include <string>
#include <vector>

namespace teratron {

struct ChartLine {
  std::string name;
  std::vector<double> x, y;  // equally many
  bool dashed = false;
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines;
};

// Each chart with axes from 0 to a little above the largest value, every x that a point has marked, a legend.
std::string svg_of(const std::vector<Chart>& charts);

}  // namespace teratron
