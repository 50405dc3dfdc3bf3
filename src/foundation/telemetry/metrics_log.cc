#include "telemetry/metrics_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_string.h"

namespace teratron {
namespace {

struct TrimmedLog {
  std::string kept;
  std::int64_t dropped_lines = 0;
};

// Point from which a run resumes.
struct Resumption {
  std::int64_t iteration;
  std::vector<std::string> unwanted;  // metrics whose lines of `iteration` are dropped too
};

bool is_kept(std::string_view line, std::int64_t number, const Resumption& resumption,
             const std::filesystem::path& path) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto iteration = object.is_object() ? object.find("iteration") : object.end();
  if (!object.is_object() || iteration == object.end() || !iteration->is_number_integer()) {
    throw_user_error("line {} of '{}' is not a metrics line (a JSON object with an \"iteration\"); move the file away",
                     number, path.string());
  }
  const auto of = iteration->get<std::int64_t>();
  return of < resumption.iteration ||
         (of == resumption.iteration && std::ranges::none_of(resumption.unwanted, [&](const std::string& metric) {
            return object.contains(metric);
          }));
}

TrimmedLog trim(std::string_view text, const Resumption& resumption, const std::filesystem::path& path) {
  TrimmedLog trimmed;
  // After a power failure, zeros may stand where lines had not come to the disk; nothing after them counts.
  if (const std::size_t lost = text.find('\0'); lost != text.npos) {
    text = text.substr(0, lost);
    trimmed.dropped_lines = 1;
  }
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const bool cut_short = end == std::string_view::npos;
    const std::string_view line = text.substr(0, cut_short ? text.size() : end + 1);
    text.remove_prefix(line.size());
    if (cut_short || !is_kept(line, number, resumption, path)) {
      ++trimmed.dropped_lines;
    } else {
      trimmed.kept += line;
    }
  }
  return trimmed;
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, std::int64_t iteration, std::vector<std::string> unwanted) {
  std::error_code missing;
  if (std::filesystem::is_regular_file(path, missing)) {  // a pipe or device holds nothing to trim and may never end
    const TrimmedLog trimmed = trim(read_file(path), {iteration, std::move(unwanted)}, path);
    dropped_lines_ = trimmed.dropped_lines;
    if (dropped_lines_ > 0) write_file_atomically(path, trimmed.kept);
  }
  file_.emplace(std::move(path));
}

void MetricsLog::write(std::int64_t iteration, const std::vector<Metric>& metrics) {
  nlohmann::ordered_json object;
  object["iteration"] = iteration;
  for (const auto& [name, value] : metrics) {
    std::visit([&, key = std::string(name)](const auto& typed) { object[key] = typed; }, value);
  }
  file_->append(json_text(object) + "\n");
}

}  // namespace teratron
