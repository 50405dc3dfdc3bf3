// Writer of SVG pictures: elements, escaping, and ticks of axes. Coordinates are pixels from the top left corner. Text
// is in a sans-serif font.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron::svg {

// Beginning of every picture.
inline constexpr std::string_view kBeginning = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"";

// Text as content or attribute of SVG and HTML.
std::string escaped(std::string_view text);

enum class Anchor { kStart, kMiddle, kEnd };

class Drawing {
 public:
  Drawing(double width, double height);  // white, or dark where the page around it is

  // Writes text with its baseline at y. The anchor is the part of the text at x.
  void text(double x, double y, Anchor anchor, int size, std::string_view text);
  // Writes black text with its middle at x, on a bright block.
  void label(double x, double y, int size, std::string_view text);
  // Writes text upwards with its middle at (x, y).
  void text_upwards(double x, double y, int size, std::string_view text);
  void rectangle(double x, double y, double width, double height, std::string_view fill);
  void block(double x, double y, double width, double height, std::string_view fill);  // with a thin white edge
  void line(double x1, double y1, double x2, double y2, std::string_view color);
  void polyline(std::span<const std::pair<double, double>> points, std::string_view color);
  void circle(double x, double y, double radius, std::string_view fill);

  std::string finish() &&;  // the file

 private:
  std::string svg_;
};

// Colour of the n-th series of a chart; colours repeat after the eighth.
std::string_view series_color(std::size_t n);

// Estimated width of the text, in pixels: ample for usual text, too small for many wide letters.
double text_width(std::string_view text, int size);

// Round values (1, 2, 2.5 or 5 times a power of ten apart) from 0 to at least `largest`, at most `most` + 1 of them.
// `largest` is finite and not negative.
std::vector<double> ticks(double largest, int most);

// Labels with the fewest digits that distinguish the values, all in one unit: "0.5", "5500", "250k", "1.5M". Values up
// to 1e18 have no exponent.
std::vector<std::string> tick_labels(std::span<const double> values);

}  // namespace teratron::svg
