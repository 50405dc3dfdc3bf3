// teratron profile: measures the costs of slices of tokens in every stage of a pipeline on this machine, for train
// --token-slices auto and for simulate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "cli/commands.h"
#include "cli/plan/profile_machine.h"
#include "cli/report.h"
#include "cluster/cluster_file.h"
#include "cluster/presets.h"
#include "console/long_task.h"
#include "console/text_table.h"
#include "model/family.h"
#include "profile/machine_speed.h"
#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "runtime/ranks.h"
#include "slicing/cost/iteration_times.h"

namespace teratron {
namespace {

// A profile serves every way of slicing.
struct ProfileOptions : StepSettings {
  ProfileOptions() { pipeline.token_slices = "auto"; }
  std::int64_t repeats = 3;
  bool overwrite = false;
  std::filesystem::path output, json;
  std::string cluster;  // measure the machine in place of a model; empty: don't

  Faults faults() const {
    if (!cluster.empty()) return machine_faults();
    if (model.config.family().continues_text) return step_faults();
    Faults faults;
    faults.add("profile measures what slices of tokens cost, and sequences of a BERT are not cut into slices; {} gpt2",
               Flag{"model-type"});
    return faults;
  }

  Faults step_faults() const {
    Faults faults = StepSettings::faults();
    add_output_faults(faults, "--output", output, json);
    faults.add(layout.execution_faults());
    faults.add_if(
        pipeline.chooses_layers(),
        "{} is auto, which train and simulate answer by what stages cost, and profile measures that; leave it out",
        Flag{"pipeline-layout"});
    faults.add_if(!layout.recomputation().uniform(),
                  "{} {} is of some layers, and a profile is of layers alike; leave it out: train adds what it takes",
                  Flag{"recompute-granularity"}, layout.recompute);
    return faults;
  }

  // Faults without a model, batch or tokenizer.
  Faults machine_faults() const {
    Faults faults = layout.faults();
    faults.add(backend.faults());
    add_output_faults(faults, "--cluster", cluster, json);
    faults.add_if(find_cluster_preset(cluster).has_value(),
                  "{} is {}, a preset, which plan and simulate take in place of a file of that name; give {} {}.toml",
                  Flag{"cluster"}, cluster, Flag{"cluster"}, cluster);
    faults.add_if(!output.empty(),
                  "{} is where a model's profile goes, and {} FILE where a machine's does; leave it out",
                  Flag{"output"}, Flag{"cluster"});
    return faults;
  }
};

FieldList fields_of(ProfileOptions& o) {
  FieldList list;
  add_model_fields(list, o.model);
  list.group("Training");
  add_seq_length_field(list, o.model);
  add_micro_batch_size_field(list, o.batch);
  list.group("Precision");
  add_training_precision_fields(list, o.backend);
  add_training_layout_fields(list, o.layout);
  list.group("Pipeline");
  add_pipeline_layout_field(list, o.pipeline);
  list.group("Data");
  add_tokenizer_field(list, o.model);
  add_machine_fields(list, o);
  list.group("Measuring");
  list.add("repeats", &o.repeats, "N", "rounds over all slicings").between(1, 1000);
  list.add("output", &o.output, "FILE", "where the profile goes; not given: where train --token-slices auto looks")
      .writes()
      .alias = "out";
  list.add("cluster", &o.cluster, "FILE",
           "measure the machine in place of a model, a device for each rank of the layout (--dp 2), and write it as a "
           "cluster for plan and simulate; this-machine: to the user's cache, where they find it by that name");
  add_overwrite_field(list, o.overwrite);
  add_json_field(list, o.json);
  return list;
}

std::string short_text(const slicing::MeasuredIteration& iteration) {
  const std::vector<std::int64_t>& slices = iteration.slices;
  std::string text = fmt::format("{}", fmt::join(slices, ","));
  if (slices.size() > 8) {
    text = fmt::format("{},.. {} of them", fmt::join(slices.begin(), slices.begin() + 3, ","), slices.size());
  }
  return iteration.micro_batches == 1 ? text : fmt::format("{} micro-batches of {}", iteration.micro_batches, text);
}

std::string lengths_table(const slicing::Profile& profile) {
  TextTable table(std::vector<Align>(1 + 2 * profile.stages.size(), Align::kRight));
  std::vector<std::string> head = {"tokens"};
  for (std::size_t stage = 0; stage < profile.stages.size(); ++stage) {
    head.push_back(fmt::format("stage {} forward", stage));
    head.emplace_back("backward");
  }
  table.row(head);
  for (const std::int64_t length : profile.stages.front().forward.lengths) {
    std::vector<std::string> row = {fmt::format("{}", length)};
    for (const slicing::StageCosts& stage : profile.stages) {
      row.push_back(fmt::format("{:.3f}", stage.forward.milliseconds(length, 0)));
      row.push_back(fmt::format("{:.3f}", stage.backward.milliseconds(length, 0)));
    }
    table.row(row);
  }
  return table.text();
}

std::string context_table(const slicing::Profile& profile) {
  const Align right = Align::kRight;
  TextTable table({Align::kLeft, right, right, right, right, right, right, right, right});
  table.row({"", "a0", "a1", "a2", "a3", "held-out error, %", "worst", "noise, %", "worst"});
  for (std::size_t stage = 0; stage < profile.stages.size(); ++stage) {
    const auto add = [&](const char* pass, const slicing::CostModel& model, const slicing::RelativeError& error,
                         const slicing::RelativeError& noise) {
      std::vector<std::string> row = {fmt::format("stage {} {}", stage, pass)};
      for (const double a : model.context) row.push_back(fmt::format("{:.3g}", a));
      for (const slicing::RelativeError* one : {&error, &noise}) {
        row.push_back(fmt::format("{:.2f}", 100 * one->mean));
        row.push_back(fmt::format("{:.2f}", 100 * one->worst));
      }
      table.row(row);
    };
    const slicing::StageCosts& costs = profile.stages[stage];
    add("forward", costs.forward, costs.forward_error, costs.forward_noise);
    add("backward", costs.backward, costs.backward_error, costs.backward_noise);
  }
  return table.text();
}

// Backward in two parts; empty if that was not measured.
std::string parts_table(const slicing::Profile& profile) {
  const Align right = Align::kRight;
  TextTable table({Align::kLeft, right, right, right});
  const std::int64_t length = profile.stages.front().forward.lengths.back();
  table.row({"", "whole", "the input's gradient", "the weights'"});
  for (std::size_t stage = 0; stage < profile.stages.size(); ++stage) {
    if (!profile.stages[stage].parts) return "";
    const pipeline::PassTimes times = profile.stages[stage].times(length, 0);
    table.row({fmt::format("stage {}", stage), fmt::format("{:.2f}", times.backward),
               fmt::format("{:.2f}", times.backward_input), fmt::format("{:.2f}", times.backward_weight)});
  }
  return fmt::format("Backward of {} tokens in one and in two parts, milliseconds:\n{}\n", length, table.text());
}

std::string checks_table(const slicing::Profile& profile) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"slices", "measured", "predicted", "off, %", ""});
  for (const slicing::MeasuredIteration& iteration : profile.iterations) {
    const double predicted = slicing::predicted_milliseconds(profile, iteration);
    table.row({short_text(iteration), fmt::format("{:.1f}", iteration.pipeline), fmt::format("{:.1f}", predicted),
               fmt::format("{:+.2f}", 100 * (predicted / iteration.pipeline - 1)),
               iteration.held_out ? "held out" : ""});
  }
  return table.text();
}

std::string text_of(const slicing::Profile& profile, const std::filesystem::path& file) {
  std::string text = fmt::format("{}\n\nMilliseconds of a slice without context:\n{}\n", slicing::text_of(profile.key),
                                 lengths_table(profile));
  text += fmt::format("Context adds a0 + a1 l + a2 c + a3 l c milliseconds:\n{}\n", context_table(profile));
  text += parts_table(profile);
  text += fmt::format("Until the last pass is done, milliseconds:\n{}\n", checks_table(profile));
  text += fmt::format("pace: {:.3f} of these where one stage works at a time, {:.3f} where all do\n",
                      profile.pace.alone, profile.pace.together);
  text += fmt::format("transfers: {:.4f} ms and {:.3g} ms a token; update: {:.2f} ms an iteration\n",
                      profile.transfer.fixed, profile.transfer.per_token, profile.update);
  return text + fmt::format("profile: {}\n", file.string());
}

nlohmann::ordered_json json_of(const slicing::Profile& profile, const std::filesystem::path& file) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const slicing::MeasuredIteration& iteration : profile.iterations) {
    checks.push_back({{"slices", iteration.slices},
                      {"micro_batches", iteration.micro_batches},
                      {"held_out", iteration.held_out},
                      {"measured_ms", iteration.pipeline},
                      {"predicted_ms", slicing::predicted_milliseconds(profile, iteration)}});
  }
  double mean = 0, worst = 0, noise = 0;
  for (const slicing::StageCosts& stage : profile.stages) {
    for (const slicing::RelativeError& error : {stage.forward_error, stage.backward_error}) {
      mean += error.mean / static_cast<double>(2 * profile.stages.size());
      worst = std::max(worst, error.worst);
    }
    noise += (stage.forward_noise.mean + stage.backward_noise.mean) / static_cast<double>(2 * profile.stages.size());
  }
  return {{"file", file.string()},       {"profile", nlohmann::ordered_json::parse(slicing::to_json(profile))},
          {"held_out_mean_error", mean}, {"held_out_worst_error", worst},
          {"held_out_noise", noise},     {"iterations", checks}};
}

// Estimated seconds of a step: a micro-batch goes through the stages one by one, and training reaches about half the
// speed of matrix products. `peak`: FLOP/s of all ranks.
double expected_seconds(const ProfileRequest& request, const Mesh& mesh, double peak) {
  constexpr double kUseOfPeak = 0.5;
  const double flops =
      static_cast<double>(request.sequences * request.tokens) * request.model.training_flops_per_token(request.tokens);
  return flops / (kUseOfPeak * peak / (mesh.data->size() * mesh.pipeline->size()));
}

void run(const ProfileOptions& options) {
  const std::filesystem::path out =
      options.cluster != kThisMachine ? options.cluster : "";  // that one is our own cache
  for (const std::filesystem::path& file : {options.output, out}) {
    require_free(std::array{file}, options.overwrite);
    require_writable(file);
  }
  if (!options.cluster.empty()) return profile_machine(options, options.cluster, options.repeats, options.json);
  const RankLauncher launcher(options.layout, options.backend.kind);
  const std::optional<OutputLock> lock = launcher.lock(options.output);
  const std::int64_t vocab_size = options.model.vocabulary_size();
  launcher.run(options_text(options), [&](const Rank& rank) {
    const std::unique_ptr<Backend> backend = make_backend(options.backend, rank);
    ProfileRequest request = profile_request(options, vocab_size, rank.environment.ranks_are());
    request.repeats = static_cast<int>(options.repeats);
    const double peak = peak_flops(*backend, rank.world);
    ProfileProgress progress;
    if (rank.is_first()) {
      progress = show_steps(fmt::format("measuring what slices of {} tokens cost", request.tokens),
                            expected_seconds(request, *rank.mesh, peak));
    }
    const std::filesystem::path file =
        options.output.empty() ? cached_profile(profile_key(request, *rank.mesh, *backend)) : options.output;
    if (rank.is_first() && options.output.empty()) {  // before the minutes of measuring
      make_folders(file.parent_path());
      require_writable(file);
    }
    const slicing::Profile profile = measure_profile(request, rank.mesh, *backend, progress);
    if (!rank.is_first()) return;
    write_profile(profile, file);
    report_beside(options.output, options.json, text_of(profile, file), json_of(profile, file));
  });
}

}  // namespace

Command profile_command() {
  return make_command<ProfileOptions>("profile", "measures what slices of tokens cost in the stages of a pipeline",
                                      run);
}

}  // namespace teratron
