// Bars side by side as an SVG picture.
#pragma once

#include <string>
#include <vector>

namespace teratron::svg {

struct BarChart {
  struct Group {
    std::string label;
    std::vector<double> values;  // one a series
  };
  std::string title, axis;          // what the bars are, what they measure
  std::vector<std::string> series;  // one colour each
  std::vector<Group> groups;
};

// The charts below one another.
std::string to_svg(const std::vector<BarChart>& charts);

}  // namespace teratron::svg
