// Bar charts as SVG pictures.
#pragma once

#include <string>
#include <vector>

namespace teratron::svg {

struct BarChart {
  struct Group {
    std::string label;
    std::vector<double> values;  // one per series
  };
  std::string title, axis;          // axis: the measured quantity
  std::vector<std::string> series;  // names, each with a colour
  std::vector<Group> groups;
};

// Draws the charts below one another.
std::string to_svg(const std::vector<BarChart>& charts);

}  // namespace teratron::svg
