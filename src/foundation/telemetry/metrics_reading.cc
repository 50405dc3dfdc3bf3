#include "telemetry/metrics_reading.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

std::vector<MetricsLine> read_metrics(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<MetricsLine> lines;
  std::string_view rest = std::string_view(text).substr(0, text.find('\0'));
  for (std::int64_t number = 1; rest.find('\n') != std::string_view::npos; ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    auto object = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains("iteration") || !object["iteration"].is_number_integer()) {
      throw_user_error("line {} of '{}' is not a metrics line (a JSON object with an \"iteration\")", number,
                       path.string());
    }
    const auto kind = object.find("kind");
    const bool says_kind = kind != object.end() && kind->is_string();
    const auto iteration = object["iteration"].get<std::int64_t>();
    lines.push_back({.iteration = iteration,
                     .kind = object.contains("loss") ? "iteration"
                             : says_kind             ? kind->get<std::string>()
                                                     : "validation",
                     .values = std::move(object)});
  }
  return lines;
}

}  // namespace teratron
