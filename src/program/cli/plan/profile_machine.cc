#include "cli/plan/profile_machine.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "cli/report.h"
#include "cluster/cluster_file.h"
#include "console/long_task.h"
#include "console/text_table.h"
#include "plan/costs/calibration.h"
#include "plan/costs/cost_constants.h"
#include "profile/calibration_steps.h"
#include "profile/measured_cluster.h"
#include "runtime/backend_choice.h"
#include "runtime/memory_table.h"
#include "runtime/ranks.h"

namespace teratron {
namespace {

using plan::Calibration;

std::string text_of(const Calibration& calibration, const std::vector<CalibrationStep>& steps,
                    const std::filesystem::path& file) {
  const Cluster& cluster = calibration.cluster;
  std::string text = fmt::format("{} x {}: {:.1f} GFLOP/s, {:.1f} GB/s, {:.1f} GiB each\n", cluster.devices,
                                 cluster.device.name, cluster.device.peak_32 / 1e9,
                                 cluster.device.memory_bandwidth / 1e9, cluster.device.memory / (1 << 30));
  for (const LinkLevel& link : cluster.links) {
    text += fmt::format("sums between ranks: {:.2f} GB/s, {:.1f} us\n", link.bandwidth / 1e9, 1e6 * link.latency);
  }
  TextTable constants({Align::kLeft, Align::kRight});
  for (const Constant& constant : cluster.constants)
    constants.row({constant.name, fmt::format("{:.4g}", constant.value)});
  text += "\n" + constants.text();
  std::size_t passes = 0;
  for (const CalibrationStep& step : steps) passes += 2 * step.slices.size();
  return text + fmt::format(
                    "\nThe cost model with these is {:.1f} % off the {} passes of {} small models, {:.1f} % at "
                    "worst.\ncluster: {}\n",
                    100 * calibration.mean_error, passes, steps.size(), 100 * calibration.worst_error, file.string());
}

nlohmann::ordered_json json_of(const Calibration& calibration, const std::vector<CalibrationStep>& steps,
                               const std::filesystem::path& file) {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array(), constants = nlohmann::ordered_json::object();
  for (const Constant& constant : calibration.cluster.constants) constants[constant.name] = constant.value;
  for (const CalibrationStep& step : steps) {
    const std::vector<pipeline::PassTimes> ours = plan::predicted(step, calibration.cluster);
    for (std::size_t slice = 0; slice < step.slices.size(); ++slice) {
      passes.push_back(
          {{"layers", step.model.num_layers},
           {"hidden_size", step.model.hidden_size},
           {"vocab_size", step.model.vocab_size},
           {"sequences", step.sequences},
           {"slices", step.slices},
           {"slice", slice},
           {"tensor", step.tensor},
           {"shards_optimizer", step.shards_optimizer},
           {"pace", step.pace},
           {"forward_ms", step.passes[slice].forward},
           {"backward_ms", step.passes[slice].backward},
           {"after_ms", step.after},
           {"predicted_forward_ms", ours[slice].forward},
           {"predicted_backward_ms", ours[slice].backward},
           {"predicted_after_ms", step.tensor == 1 ? plan::predicted_after(step, calibration.cluster) : 0.0}});
    }
  }
  return {{"file", file.string()},
          {"devices", calibration.cluster.devices},
          {"constants", constants},
          {"mean_error", calibration.mean_error},
          {"worst_error", calibration.worst_error},
          {"passes", passes}};
}

}  // namespace

void profile_machine(const StepSettings& settings, const std::string& cluster_name, std::int64_t rounds,
                     const std::filesystem::path& json) {
  const std::filesystem::path file =
      cluster_name == kThisMachine ? this_machine_file() : std::filesystem::path(cluster_name);
  if (file.empty()) throw_user_error("neither XDG_CACHE_HOME nor HOME says where the cache is; give --cluster FILE");
  require_separate({}, std::array{file, json});
  const RankLauncher launcher(settings.layout, settings.backend.kind);
  const std::optional<OutputLock> lock = launcher.lock(file);
  launcher.run(fmt::format("{}", rounds), [&](const Rank& rank) {
    const std::unique_ptr<Backend> backend = make_backend(settings.backend, rank);
    rank.world.attach(backend.get());
    const Cluster cluster = measured_cluster(*backend, rank.world);
    const auto show = [&](const char* models) {
      return rank.is_first() ? show_steps(fmt::format("measuring {}", models)) : std::function<void(int, int)>();
    };
    const std::vector<CalibrationStep> steps = measured_steps(rank.world, *backend, static_cast<int>(rounds), show);
    if (!rank.is_first()) return;
    const Calibration calibration = plan::calibrate(cluster, steps, computing_threads(*backend));
    if (file.has_parent_path()) make_folders(file.parent_path());
    write_file_atomically(file, to_toml(calibration.cluster));
    report_beside(file, json, text_of(calibration, steps, file), json_of(calibration, steps, file));
  });
}

}  // namespace teratron
