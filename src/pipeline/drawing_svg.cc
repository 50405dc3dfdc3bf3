#include <fmt/format.h>

#include <algorithm>

#include "pipeline/drawing.h"

namespace teratron::pipeline {
namespace {

// Pixels.
constexpr double kWidth = 960, kLeft = 64, kRight = 16, kTitle = 30, kRow = 26, kAxis = 34;

const char* color_of(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "#8db9e8";
    case Pass::kBackward: return "#93c88b";
    case Pass::kBackwardInput: return "#7fcdbb";
    case Pass::kBackwardWeight: return "#f2c46d";
  }
  return "black";
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<' || c == '&') {
      safe += c == '<' ? "&lt;" : "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string text_at(double x, double y, const char* anchor, int size, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor,
                     size, escaped(text));
}

std::string rectangle(double x, double y, double width, const char* color) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"white\" "
      "stroke-width=\"0.6\"/>\n",
      x, y, width, kRow - 2, color);
}

// Micro-batch, then slice; later chunks are marked by primes.
std::string label_of(const Schedule& schedule, const Action& action) {
  std::string label = fmt::format("{}", action.micro_batch);
  if (schedule.slices > 1) {
    label = schedule.micro_batches > 1 ? fmt::format("{}.{}", action.micro_batch, action.slice)
                                       : fmt::format("{}", action.slice);
  }
  return label + std::string(static_cast<std::size_t>(action.chunk), '\'');
}

double height_of(const Picture& picture) { return kTitle + kRow * picture.schedule.stages + kAxis; }

std::string draw(const Picture& picture, double top, double pixels) {  // a millisecond
  const Simulation& simulation = picture.simulation;
  std::string svg = text_at(kLeft, top + 18, "start", 14, picture.title);
  for (std::size_t stage = 0; stage < simulation.actions.size(); ++stage) {
    const double y = top + kTitle + kRow * static_cast<double>(stage);
    svg += text_at(kLeft - 6, y + kRow / 2 + 3, "end", 11, fmt::format("stage {}", stage));
    svg += rectangle(kLeft, y, simulation.iteration * pixels, "#e4e4e4");
    for (const TimedAction& timed : simulation.actions[stage]) {
      const double x = kLeft + timed.start * pixels, width = (timed.end - timed.start) * pixels;
      svg += rectangle(x, y, width, color_of(timed.action.pass));
      const std::string label = label_of(picture.schedule, timed.action);
      if (width >= 6.5 * static_cast<double>(label.size())) {
        svg += text_at(x + width / 2, y + kRow / 2 + 3, "middle", 10, label);
      }
    }
  }
  const double floor = top + kTitle + kRow * picture.schedule.stages + 14;
  svg += text_at(kLeft, floor, "start", 11, "0 ms");
  svg += text_at(kLeft + simulation.iteration * pixels, floor, "end", 11,
                 fmt::format("{:.4g} ms, bubbles {:.1f} %", simulation.iteration, 100 * simulation.bubble_share()));
  return svg;
}

}  // namespace

std::string to_svg(const std::vector<Picture>& pictures, double span) {
  double longest = span, height = 0;
  for (const Picture& picture : pictures) {
    longest = std::max(longest, picture.simulation.iteration);
    height += height_of(picture);
  }
  const double pixels = longest > 0 ? (kWidth - kLeft - kRight) / longest : 0;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, height);
  double top = 0;
  for (const Picture& picture : pictures) {
    svg += draw(picture, top, pixels);
    top += height_of(picture);
  }
  return svg + "</svg>\n";
}

}  // namespace teratron::pipeline
