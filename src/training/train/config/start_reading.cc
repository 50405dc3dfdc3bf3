#include "train/config/start_reading.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/tokenizer_files.h"
#include "data/data_path.h"
#include "data/indexed/corpus_sidecar.h"
#include "model/family.h"
#include "options/reading.h"
#include "runtime/recorded_data.h"
#include "runtime/weight_use.h"
#include "tokenizer/tokenizer.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

bool holds_checkpoint(const fs::path& folder) {
  return is_there(folder / kTrackerFile) || is_there(folder / kManifestFile) || !iterations_in(folder).empty();
}

// The settings as given, faults or not: the start of the run decides what the rest means.
class GivenSettings {
 public:
  GivenSettings(std::span<const std::string> arguments, ConfigFiles& files) : fields_(fields_of(config_)) {
    read_fields(fields_, arguments, files);
    if (!config_.output.finetune.empty() && !config_.output.load.empty()) {
      (holds_checkpoint(config_.output.load) ? config_.output.finetune : config_.output.load).clear();
    }
  }
  GivenSettings(const GivenSettings&) = delete;
  GivenSettings& operator=(const GivenSettings&) = delete;

  const TrainConfig& config() const { return config_; }
  template <class Value>
  bool has(const Value& value) {  // of config()
    return fields_.field_of(value).given;
  }

  GivenPipeline pipeline() {
    const PipelineSettings& pipeline = config_.pipeline;
    return {.is_auto = has(pipeline.schedule) && !pipeline.schedule,
            .layout_is_auto = has(pipeline.layout) && pipeline.chooses_layers(),
            .virtual_stages = has(pipeline.virtual_stages),
            .layout = has(pipeline.layout) && !pipeline.chooses_layers(),
            .token_slices = has(pipeline.token_slices) && !pipeline.chooses_slices(),
            .defer_weight_gradients = has(pipeline.defer_weight_gradients),
            .vocabulary_parallel = has(pipeline.vocabulary_parallel),
            .recompute = has(config_.layout.recompute) || config_.layout.keep_activations == KeepActivations::kAll};
  }

 private:
  TrainConfig config_;
  FieldList fields_;
};

CheckpointInfo checkpoint_to_resume(const TrainConfig& config) {
  const fs::path folder = config.output.checkpoint();
  std::error_code error;
  const std::vector<std::int64_t> there = iterations_in(config.output.load);
  if (config.output.iteration > 0 && !fs::exists(folder, error) && !there.empty()) {
    throw_user_error("'{}' has no checkpoint of iteration {}; there are: {}", config.output.load.string(),
                     config.output.iteration, fmt::join(there, ", "));
  }
  CheckpointInfo checkpoint = read_checkpoint_info(folder);
  require_usable(WeightUse::kTrainLoad, source_of(checkpoint));
  return checkpoint;
}

// Folder of the checkpoint's tokenizer: the training's, if that still has the same, else the checkpoint's.
fs::path tokenizer_of(const CheckpointInfo& checkpoint, const fs::path& recorded) {
  const FileContents saved = find_tokenizer_files(checkpoint.folder);
  if (saved.empty()) return {};
  std::error_code error;
  const bool is_there = !recorded.empty() && fs::exists(recorded, error) && find_tokenizer_files(recorded) == saved;
  return is_there ? recorded : checkpoint.folder;
}

void take_record(FieldList& fields, TrainConfig& config, const CheckpointInfo& checkpoint, GivenSettings& given) {
  if (checkpoint.settings) {
    const LayoutSettings& layout = given.config().layout;
    const bool other_layout =
        given.has(layout.tensor_parallel) || given.has(layout.pipeline_parallel) || given.has(layout.data_parallel);
    std::vector<Setting> settings = recorded_settings_of(checkpoint, fields);
    std::erase_if(settings, [&](const Setting& setting) {
      const FieldScope scope = setting.field->scope;
      return setting.field->is_of_command() || (other_layout && scope == FieldScope::kLayout);
    });
    FaultLines other_versions;  // values that this one does not have
    apply_settings(fields, settings, other_versions);
    config.split.order = SplitOrder::kAuto;  // the rule is in the training state
    config.split.seed = 0;
    config.output.tensorboard_is_recorded = !given.has(given.config().output.tensorboard_dir);
  }
  config.model.config = checkpoint.model;
  config.model.tokenizer = tokenizer_of(checkpoint, config.model.tokenizer);
}

void take_weights(TrainConfig& config, const fs::path& path) {
  const WeightSource source = find_weights(path);
  require_usable(WeightUse::kTrainFinetune, source);
  config.model.config = source.model;
  config.model.config.set_pretraining_head();
  config.model.seq_length = std::min(config.model.seq_length, source.model.max_position_embeddings);
  if (source.has_tokenizer) config.model.tokenizer = source.folder;
}

void require_tokenizer_fits(const TrainConfig& config, const fs::path& source) {
  if (config.model.tokenizer.empty()) return;
  const std::int64_t tokens = Tokenizer::load(config.model.tokenizer).vocab_size();
  if (tokens > config.model.config.vocab_size) {
    throw_user_error("the tokenizer in '{}' has {} tokens and the model in '{}' {}; give the one it was trained with",
                     config.model.tokenizer.string(), tokens, source.string(), config.model.config.vocab_size);
  }
}

// UserError: --dpo from weights with adapters. Its reference model is the one without adapters, which has not learned
// what they have.
void require_reference(const TrainConfig& config) {
  const fs::path& from = config.output.finetune;
  if (!config.documents.dpo || from.empty() || !find_weights(from).model.adapters.active()) return;
  throw_user_error(
      "'{}' holds adapters, and --dpo compares with the model without them; merge them first: teratron convert "
      "--merge --from teratron --to teratron {} OUT, then --finetune OUT",
      from.string(), from.string());
}

std::string unknown_settings(const CheckpointInfo& checkpoint) {
  return fmt::format(
      "'{}', written by {}, does not record its settings; beside its shape and tokenizer, give those that it was "
      "trained with: --data-path, --train-iters, --seq-length, --micro-batch-size, --global-batch-size, --seed, "
      "--split, --lr and the rest of its schedule",
      checkpoint.folder.string(), checkpoint.written_by);
}

// Takes the tokenizer that the first corpus was made with, if none is given and its folder still has the same.
void take_tokenizer_of_corpus(TrainConfig& config, FaultLines& lines) {
  const bool is_needed = config.model.config.vocab_size == 0 || !config.model.config.family().continues_text;
  const auto word = std::ranges::find_if(config.data_path,
                                         [](const std::string& one) { return weights_of(std::span(&one, 1)).empty(); });
  if (!config.model.tokenizer.empty() || !is_needed || word == config.data_path.end()) return;
  const std::string prefix = word->substr(0, word->find(','));
  std::optional<CorpusSidecar> sidecar;
  try {
    sidecar = read_sidecar(prefix);
    if (!sidecar) return;
    const fs::path& tokenizer = sidecar->tokenizer.name;
    if (Tokenizer::load(tokenizer).hash() == sidecar->tokenizer.hash) config.model.tokenizer = tokenizer;
  } catch (const UserError&) {
    // Neither there nor readable.
  }
  if (!sidecar || !config.model.tokenizer.empty()) return;
  lines.push_back(
      fmt::format("--tokenizer DIR is missing: the corpus '{}' was made with '{}' ({} tokens), which is not there, or "
                  "another one by now",
                  prefix, sidecar->tokenizer.name, sidecar->tokenizer.vocab_size));
}

// Folder that the training saved to; empty: the checkpoint lies elsewhere now, or has no record of settings.
fs::path save_folder_of(const CheckpointInfo& checkpoint) {
  if (!checkpoint.settings) return {};
  for (const CheckpointName& name : names_of(checkpoint.folder)) {
    if (name.iteration == checkpoint.state.iteration && is_there(name.root / kTrackerFile)) return name.root;
  }
  return {};
}

}  // namespace

TrainStart read_train_start(std::span<const std::string> arguments) {
  ConfigFiles files;
  GivenSettings given(arguments, files);
  TrainStart start{.config = {}, .checkpoint = {}, .given = given.pipeline()};
  TrainConfig& config = start.config;
  FieldList fields = fields_of(config);
  if (!given.config().output.load.empty()) {
    start.checkpoint = checkpoint_to_resume(given.config());
    take_record(fields, config, *start.checkpoint, given);
  } else if (!given.config().output.finetune.empty()) {
    take_weights(config, given.config().output.finetune);
  }
  FaultLines lines = read_fields(fields, arguments, files);
  take_tokenizer_of_corpus(config, lines);
  config.output.load = given.config().output.load;
  config.output.finetune = given.config().output.finetune;
  if (!config.output.finetune.empty()) config.output.iteration = 0;  // which was about --load
  if (start.checkpoint) {
    config = filled_from(*start.checkpoint, config);
    if (!given.has(given.config().output.save)) config.output.save = save_folder_of(*start.checkpoint);
    if (!start.checkpoint->settings && !lines.empty()) lines.push_back(unknown_settings(*start.checkpoint));
  }
  Faults faults = fields.range_faults();
  faults.add(config.faults());
  add_value_faults(fields, faults, lines);
  throw_if_any(lines);
  if (!start.checkpoint) require_reference(config);
  if (start.checkpoint) {
    require_tokenizer_fits(config, start.checkpoint->folder);
    training_split(config.split, config.output.checkpoint());
    require_resumable(*start.checkpoint, config);
  } else if (!config.output.finetune.empty()) {
    require_tokenizer_fits(config, config.output.finetune);
  }
  return start;
}

}  // namespace teratron
