// Curves over a linear axis, as an SVG element of an HTML page, which decides its width and, by CSS, its colours.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace teratron::svg {

using Points = std::vector<std::pair<double, double>>;

struct CurveChart {
  struct Curve {
    std::string name;
    std::size_t color = 0;  // of class c0 to c7
    Points points;          // finite, x ascending
    bool is_dashed = false;
  };
  std::string title, x_axis;
  std::vector<Curve> curves;
};

// A curve as it is drawn: of many points, the mean, the least and the largest y of each stretch of x.
struct DrawnCurve {
  Points means;
  Points spread;  // least and largest y of each mean; empty: each point is itself
};
DrawnCurve drawn(const Points& points, std::size_t most = 240);

// Draws the chart. Both axes begin where the data does. Elements have the classes `grid`, `spread`, `dashed`, and c0 to
// c7, which the page styles; the text has the page's colour. The attributes data-left, data-right, data-top, data-floor
// (pixels of the plot) and data-low-x, data-high-x, data-low-y, data-high-y (values there) let a script find values
// under a pointer.
std::string to_svg(const CurveChart& chart);

}  // namespace teratron::svg
