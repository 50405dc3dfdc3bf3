#include <fmt/format.h>

#include <algorithm>

#include "pipeline/drawing/drawing.h"
#include "report/svg.h"

namespace teratron::pipeline {
namespace {

// Pixels.
constexpr double kWidth = 960, kLeft = 64, kRight = 16, kTitle = 30, kRow = 26, kAxis = 34;
constexpr double kLegend = 24, kSquare = 10;  // of colours, below all pictures
constexpr double kTickRoom = 40;              // from the middle of a tick's label to the text after it
constexpr int kSmall = 11;                    // of stages and times

constexpr const char* kWaiting = "#e4e4e4";

const char* color_of(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "#8db9e8";
    case Pass::kBackward: return "#93c88b";
    case Pass::kBackwardInput: return "#7fcdbb";
    case Pass::kBackwardWeight: return "#f2c46d";
    case Pass::kEmbedding:
    case Pass::kEmbeddingBackward: return "#d9b3e0";
    case Pass::kHead: return "#c58fd0";
  }
  return "black";
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

// Time below the stages: round milliseconds, and at the end of the iteration how long it takes.
void draw_axis(svg::Drawing& drawing, const Simulation& simulation, double top, double pixels) {
  const double time = simulation.iteration;
  const std::string milliseconds = time < 1e4 ? fmt::format("{:.4g}", time) : fmt::format("{:.0f}", time);
  const std::string summary = fmt::format("{} ms, bubbles {:.1f} %", milliseconds, 100 * simulation.bubble_share());
  const double summary_width = svg::text_width(summary, kSmall);
  const double end = std::max(kLeft + time * pixels, kLeft + kTickRoom + summary_width);
  drawing.text(end, top + 16, svg::Anchor::kEnd, kSmall, summary);
  const std::vector<double> ticks = svg::ticks(time, 10);
  const std::vector<std::string> labels = svg::tick_labels(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double x = kLeft + ticks[i] * pixels;
    if (x + kTickRoom > end - summary_width && i > 0) break;
    drawing.line(x, top, x, top + 4, "#808080");
    drawing.text(x, top + 16, svg::Anchor::kMiddle, kSmall, i == 0 ? "0 ms" : labels[i]);
  }
}

void draw(svg::Drawing& drawing, const Picture& picture, double top, double pixels) {  // a millisecond
  const Simulation& simulation = picture.simulation;
  drawing.text(kLeft, top + 18, svg::Anchor::kStart, 14, picture.title);
  for (std::size_t stage = 0; stage < simulation.actions.size(); ++stage) {
    const double y = top + kTitle + kRow * static_cast<double>(stage);
    drawing.text(kLeft - 6, y + kRow / 2 + 3, svg::Anchor::kEnd, kSmall, fmt::format("stage {}", stage));
    drawing.block(kLeft, y, simulation.iteration * pixels, kRow - 2, kWaiting);
    for (const TimedAction& timed : simulation.actions[stage]) {
      const double x = kLeft + timed.start * pixels, width = (timed.end - timed.start) * pixels;
      drawing.block(x, y, width, kRow - 2, color_of(timed.action.pass));
      const std::string label = label_of(picture.schedule, timed.action);
      if (width >= 6.5 * static_cast<double>(label.size())) {
        drawing.label(x + width / 2, y + kRow / 2 + 3, 10, label);
      }
    }
  }
  draw_axis(drawing, simulation, top + kTitle + kRow * picture.schedule.stages, pixels);
}

// Colours of the passes that occur, in the order of their first ones, and of waiting.
void draw_legend(svg::Drawing& drawing, const std::vector<Picture>& pictures, double top) {
  std::vector<std::pair<std::string_view, std::string_view>> entries;  // colour, name
  for (const Picture& picture : pictures) {
    for (const std::vector<TimedAction>& stage : picture.simulation.actions) {
      for (const TimedAction& timed : stage) {
        const std::string_view color = color_of(timed.action.pass);
        if (std::ranges::find(entries, color, [](const auto& entry) { return entry.first; }) != entries.end()) continue;
        entries.emplace_back(color, name_of(timed.action.pass));
      }
    }
  }
  entries.emplace_back(kWaiting, "waiting");
  double x = kLeft;
  for (const auto& [color, name] : entries) {
    drawing.block(x, top, kSquare, kSquare, color);
    drawing.text(x + kSquare + 5, top + 9, svg::Anchor::kStart, kSmall, name);
    x += kSquare + 20 + svg::text_width(name, kSmall);
  }
}

}  // namespace

std::string to_svg(const std::vector<Picture>& pictures, double span) {
  double longest = span, height = 0;
  for (const Picture& picture : pictures) {
    longest = std::max(longest, picture.simulation.iteration);
    height += height_of(picture);
  }
  const double pixels = longest > 0 ? (kWidth - kLeft - kRight) / longest : 0;
  svg::Drawing drawing(kWidth, height + kLegend);
  double top = 0;
  for (const Picture& picture : pictures) {
    draw(drawing, picture, top, pixels);
    top += height_of(picture);
  }
  draw_legend(drawing, pictures, top);
  return std::move(drawing).finish();
}

}  // namespace teratron::pipeline
