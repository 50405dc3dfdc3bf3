#include "cli/plan/simulate_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/files/file.h"
#include "base/replace_all.h"
#include "cluster/cluster_file.h"
#include "cluster/presets.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "plan/costs/step_time.h"
#include "plan/search/layout_memory.h"
#include "plan/train_command.h"
#include "train/plans/memory_plan.h"

namespace teratron {
namespace {

// Makes `o` know which of the fields were given, beside what they do then already.
void note_given(Field& field, ClusterScenario& o) {
  field.when_set = [&o, name = field.name, also = field.when_set] {
    o.flags.push_back(name);
    if (also) also();
  };
}

}  // namespace

void add_cluster_fields(FieldList& list, ClusterScenario& o) {
  TrainConfig& t = o.train;
  const auto before = std::distance(list.begin(), list.end());
  list.group("Costs from a model's shape");
  Field& cluster =
      list.add("cluster", &o.cluster, "NAME|FILE",
               "machines and links: passes, messages, sums and the update take what the model's shape says");
  for (const std::string_view name : cluster_preset_names()) cluster.known_values.emplace_back(name);
  list.add("micro-batch-size", &t.batch.micro_batch_size, "N", "sequences of a micro-batch");
  Field& tensor = list.add("tensor-model-parallel-size", &t.layout.tensor_parallel, "T", "ranks that split each layer");
  tensor.alias = "tp";
  add_data_parallel_field(list, t.layout, "copies of the model");
  add_pipeline_layout_field(list, t.pipeline);
  list.field_of(t.pipeline.layout).when_set = [&o] {
    o.given.layout_is_auto = o.train.pipeline.chooses_layers();
    o.given.layout = !o.given.layout_is_auto;
  };
  list.add("sequence-parallel", &t.layout.sequence_parallel, "",
           "norms, dropout and residuals are split over those ranks too");
  list.add("use-distributed-optimizer", &t.layout.distributed_optimizer, "",
           "each copy of the model keeps its share of the optimizer's state");
  add_data_sharding_field(list, t.layout);
  list.field_of(t.layout.data_sharding).when_set = [&t] {
    if (t.layout.data_sharding != DataSharding::kNone) t.layout.distributed_optimizer = true;
  };
  add_recompute_field(list, t.layout).when_set = [&o] { o.given.recompute = true; };
  list.add("bf16", &t.backend.bf16, "", "weights and activations in bf16; neither: as suits the devices").when_set =
      [&o] { o.has_precision = true; };
  list.add("fp16", &t.backend.fp16, "", "the same in fp16").when_set = [&o] { o.has_precision = true; };
  add_model_fields(list, t.model);
  for (auto field = std::next(list.begin(), before); field != list.end(); ++field) {
    if (&*field != &cluster) note_given(*field, o);
  }
}

TrainConfig ClusterScenario::config_of(const simulation::Scenario& scenario) const {
  TrainConfig config = train;
  config.data_path = {"corpus"};  // none is read
  config.layout.pipeline_parallel = scenario.stages;
  if (!given.is_auto) config.pipeline.schedule = scenario.schedule;
  config.pipeline.virtual_stages = scenario.virtual_stages;
  config.pipeline.defer_weight_gradients = scenario.defer_weight_gradients;
  config.pipeline.vocabulary_parallel = scenario.vocabulary_parallel;
  if (scenario.slices != "1" && scenario.slices != "auto") {
    const bool is_number = scenario.slices.find_first_not_of("0123456789") == std::string::npos;
    config.pipeline.token_slices = is_number ? "uniform:" + scenario.slices : scenario.slices;
  }
  if (scenario.tokens > 0) config.model.seq_length = scenario.tokens;
  config.batch.global_batch_size = config.batch.micro_batch_size * scenario.micro_batches * config.layout.data_parallel;
  return config;
}

Faults ClusterScenario::faults(const simulation::Scenario& scenario) const {
  Faults faults;
  constexpr Flag kCluster{"cluster"};
  faults.add_if(!scenario.profile.empty(), "{} and {} both say what passes cost; give one", kCluster, Flag{"profile"});
  faults.add_if(scenario.slices == "auto" && !given.is_auto,
                "{} is auto, which needs a profile; {} auto chooses slices for a {}", Flag{"slices"}, Flag{"schedule"},
                kCluster);
  faults.add_if(scenario.transfer != 0, "{} says what messages cost, and {} adds to it; leave it out", kCluster,
                Flag{"transfer-ms"});
  faults.add_if(scenario.gives_times, "{} says what passes cost; leave out {} and {}", kCluster, Flag{"forward-ms"},
                Flag{"backward-ms"});
  faults.add_if(scenario.head != 0, "{} says what heads cost, too; leave out {}", kCluster, Flag{"head-ms"});
  if (!faults.empty()) return faults;
  simulation::Scenario chosen_later = scenario;
  if (given.is_auto && scenario.slices == "auto") chosen_later.slices = "1";
  faults = chosen_later.faults();
  faults.add(train.batch.faults(/*data_parallel=*/1));
  faults.add(train.layout.faults());
  if (!faults.empty()) return faults;
  constexpr std::int64_t kMostSequences = std::numeric_limits<std::int32_t>::max();
  const std::int64_t sequences = train.batch.micro_batch_size * train.layout.data_parallel;  // of each micro-batch
  faults.add_if(sequences > kMostSequences / scenario.micro_batches,
                "{} {} x {} {} x {} {} are too many sequences an update; the most is {}", Flag{"micro-batch-size"},
                train.batch.micro_batch_size, Flag{"micro-batches"}, scenario.micro_batches, Flag{"data-parallel-size"},
                train.layout.data_parallel, kMostSequences);
  if (!faults.empty()) return faults;
  const TrainConfig config = config_of(scenario);
  for (Fault fault : static_cast<const StepSettings&>(config).faults()) {
    // Of train's flags these have other names here.
    replace_all(fault.text, "--token-slices", "--slices");
    replace_all(fault.text, "--pipeline-model-parallel-size", "--stages");
    faults.add(std::move(fault));
  }
  return faults;
}

Faults ClusterScenario::faults_without_cluster() const {
  Faults faults;
  if (flags.empty()) return faults;
  const bool is_one = flags.size() == 1;
  const Flag needed{"cluster"};
  Fault fault = Fault::of("--{} {} of a model on a cluster; give {} NAME, or leave {} out", fmt::join(flags, ", --"),
                          is_one ? "is" : "are", needed, is_one ? "it" : "them");
  fault.flags.insert(fault.flags.end(), flags.begin(), flags.end());
  faults.add(std::move(fault));
  return faults;
}

ClusterRun simulate_on_cluster(const ClusterScenario& options, const simulation::Scenario& scenario) {
  ClusterRun run{.config = options.config_of(scenario), .cluster = {}, .schedule = {}, .result = {}, .memory = {}};
  const std::int64_t ranks = run.config.layout.mesh().ranks();
  run.cluster = find_cluster(options.cluster);
  if (run.cluster.devices < ranks) {  // a preset of one host gets its network again; a stream cannot be read again
    run.cluster = is_stream(options.cluster) ? run.cluster.resized(ranks) : find_cluster(options.cluster, ranks);
  }
  plan::choose_device_settings(run.config, run.cluster.device, options.has_precision);
  const std::int64_t vocab_size = plan::vocabulary_size(run.config);
  if (options.given.chooses()) {
    GivenPipeline given = options.given;
    given.token_slices = given.token_slices && scenario.slices != "auto";
    run.choice = plan::choose_pipeline(plan::pipeline_request(run.config, given, run.cluster, vocab_size));
    run.config = run.choice->best.front().config;
  }
  const simulation::PipelineWork work = plan::work_of(run.config, run.cluster, vocab_size);
  run.schedule = work.schedule;
  run.result = simulation::simulate(work, run.cluster, true);
  run.memory = plan::memory_of_stages(run.config, plan::memory_context(run.config, vocab_size, run.cluster));
  run.tokens_per_second =
      static_cast<double>(run.config.batch.global_batch_size * run.config.model.seq_length) / run.result.seconds;
  return run;
}

std::string text_of(const ClusterRun& run) {
  const simulation::PipelineResult& result = run.result;
  std::string text = run.choice ? plan::text_of_choice(*run.choice) + "\n" : "";
  text += fmt::format(
      "{} (tensor {} x pipeline {} x data {}) of {}\n"
      "update: {:.4g} s, {:.0f} tokens/s; the pipeline takes {:.4g} s of it, with bubbles of {:.2f} %\n\n",
      counted(run.config.layout.mesh().ranks(), "rank"), run.config.layout.tensor_parallel,
      run.config.layout.pipeline_parallel, run.config.layout.data_parallel, run.cluster.name, result.seconds,
      run.tokens_per_second, result.pipeline_seconds, 100 * result.bubble_share());
  const Align right = Align::kRight;
  const Recomputation recompute = run.config.layout.recomputation();
  const bool makes_again = recompute != Recompute::kNone;
  TextTable stages({right, right, right, right, right, right, Align::kLeft});
  stages.row({"stage", "passes, s", "bubbles, %", "messages, s", "sums, s", "memory", makes_again ? "recompute" : ""});
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    const simulation::StageUse& use = result.stages[stage];
    stages.row({fmt::format("{}", stage), fmt::format("{:.4g}", use.busy),
                fmt::format("{:.2f}", 100 * use.bubble_share), fmt::format("{:.4g}", use.message_seconds),
                fmt::format("{:.4g}", use.sum_seconds), readable_bytes(static_cast<std::uint64_t>(run.memory[stage])),
                makes_again ? recompute.of(static_cast<int>(stage)).text() : ""});
  }
  text += stages.text();
  std::vector<simulation::LinkUse> links = result.links;
  std::ranges::stable_sort(links, std::greater(), &simulation::LinkUse::busy);
  if (links.size() > 8) links.resize(8);
  if (links.empty()) return text;
  TextTable ports({Align::kLeft, right, right});
  ports.row({"busiest ports", "busy, s", "GB"});
  for (const simulation::LinkUse& link : links) {
    ports.row({link.name, fmt::format("{:.4g}", link.busy), fmt::format("{:.4g}", link.bytes / 1e9)});
  }
  return text + "\n" + ports.text();
}

nlohmann::ordered_json json_of(const ClusterRun& run) {
  using Json = nlohmann::ordered_json;
  Json stages = Json::array(), links = Json::array();
  const Recomputation recompute = run.config.layout.recomputation();
  for (std::size_t stage = 0; stage < run.result.stages.size(); ++stage) {
    const simulation::StageUse& use = run.result.stages[stage];
    stages.push_back({{"busy_seconds", use.busy},
                      {"bubble_share", use.bubble_share},
                      {"message_seconds", use.message_seconds},
                      {"sum_seconds", use.sum_seconds},
                      {"memory_bytes", run.memory[stage]},
                      {"recompute", recompute.of(static_cast<int>(stage)).text()}});
  }
  for (const simulation::LinkUse& link : run.result.links) {
    links.push_back({{"name", link.name},
                     {"busy_seconds", link.busy},
                     {"busy_share", link.busy / run.result.seconds},
                     {"bytes", link.bytes}});
  }
  Json choice;  // null where nothing was chosen
  if (run.choice) choice = {{"flags", plan::train_words(run.config)}, {"text", plan::text_of_choice(*run.choice)}};
  return {{"cluster", run.cluster.name},
          {"ranks", run.config.layout.mesh().ranks()},
          {"schedule", pipeline::name_of(schedule_kind(run.config.pipeline))},
          {"stages", run.schedule.stages},
          {"micro_batches", run.schedule.micro_batches},
          {"slices", run.schedule.slices},
          {"virtual_stages", run.schedule.virtual_stages},
          {"seconds", run.result.seconds},
          {"pipeline_seconds", run.result.pipeline_seconds},
          {"bubble_share", run.result.bubble_share()},
          {"tokens_per_second", run.tokens_per_second},
          {"events", run.result.events},
          {"choice", choice},
          {"stage_use", stages},
          {"link_use", links}};
}

}  // namespace teratron
