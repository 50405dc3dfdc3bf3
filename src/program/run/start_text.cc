#include "run/start_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/host/threads.h"
#include "checkpoint/initial_weights.h"
#include "console/readable.h"
#include "model/family.h"
#include "model/presets.h"
#include "ops/cpu_instructions.h"
#include "options/output.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

constexpr std::size_t kColumns = 100;

// List "title: a, b, c", broken into lines; empty without words.
std::string wrapped_list(const std::string& title, const std::vector<std::string>& words) {
  if (words.empty()) return "";
  std::string text = title + ":";
  std::size_t column = text.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    const bool breaks = column + 1 + word.size() > kColumns;
    text += (breaks ? "\n    " : " ") + word;
    column = (breaks ? 4 : column + 1) + word.size();
  }
  return text;
}

std::vector<std::string> other_than_default(TrainConfig config) {
  config.model.config = config.model.model_for(config.model.config.vocab_size);
  TrainConfig defaults;
  // The defaults of the family and of the preset.
  defaults.model.config.set_kind(config.model.config.kind);
  const ModelPreset* const preset = config.model.preset.empty() ? nullptr : &find_model_preset(config.model.preset);
  if (preset != nullptr && preset->kind == config.model.config.kind) preset->apply_to(defaults.model.config);
  FieldList ours = fields_of(config), theirs = fields_of(defaults);
  std::vector<std::string> words;
  for (const Field& field : ours) {
    const std::string value = field.value_text();
    if (field.is_of_command() || field.in_summary || value == theirs.find(field.name)->value_text()) continue;
    const bool is_positions = field.address() == &config.model.config.max_position_embeddings;
    if (is_positions && value == fmt::format("{}", config.model.seq_length)) continue;
    words.push_back(field.is_bool() && value == "true" ? field.name : fmt::format("{} {}", field.name, value));
  }
  return words;
}

std::vector<std::string> other_than_checkpoint(const CheckpointInfo& checkpoint, const TrainConfig& config) {
  std::vector<std::string> words;
  for (const SettingDifference& difference : differences_from(checkpoint, config)) {
    const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
    words.push_back(fmt::format("{} {} -> {}", difference.field, shown(difference.there), shown(difference.here)));
  }
  return words;
}

std::string text_of_kind(const ModelConfig& model) {
  if (model.family().continues_text) return std::string(model.family().title);
  return fmt::format("{} ({})", model.family().title,
                     model.norm_placement == NormPlacement::kPre ? "pre-norm" : "post-norm");
}

std::string text_of_settings(const TrainConfig& config, const CheckpointInfo* checkpoint) {
  if (checkpoint == nullptr) return wrapped_list("not the defaults", other_than_default(config));
  const std::string differences =
      wrapped_list("differs from the checkpoint", other_than_checkpoint(*checkpoint, config));
  if (checkpoint->settings) return differences.empty() ? "all settings are the checkpoint's" : differences;
  return fmt::format("the checkpoint, by {}, does not record its settings; those that are not given are defaults{}{}",
                     checkpoint->written_by, differences.empty() ? "" : "\n", differences);
}

// Note for narrow models, in which initial weights of 0.02 learn slowly. The setting is not changed unasked.
std::string note_of_narrow(const ModelConfig& model) {
  constexpr std::int64_t kNarrow = 512;
  if (model.hidden_size >= kNarrow || model.init_method_std != ModelConfig().init_method_std) return "";
  return fmt::format(
      "\ninitial weights have a standard deviation of {}, the papers' for a hidden size of 1024 and more; "
      "--init-method-std auto: {:.3g}",
      model.init_method_std, init_std_by_width(model.hidden_size));
}

std::string text_of_origin(const TrainConfig& config, const CheckpointInfo* checkpoint) {
  if (checkpoint != nullptr) {
    return fmt::format("goes on from '{}', {} of {} updates done", checkpoint->folder.string(),
                       checkpoint->state.iteration, config.train_iters);
  }
  if (!config.output.finetune.empty()) {
    const std::string drawn = warning_of_drawn(config.output.finetune, config.model.config);
    return fmt::format("starts from the weights in '{}'{}{}", config.output.finetune.string(),
                       drawn.empty() ? "" : "\n", drawn);
  }
  return fmt::format("starts from random weights of --seed {}{}", config.seed, note_of_narrow(config.model.config));
}

std::string text_of_batches(const TrainConfig& config, const CheckpointInfo* checkpoint, std::int64_t epoch) {
  const BatchesDone done = checkpoint == nullptr ? BatchesDone{} : batches_done(checkpoint->state);
  const BatchSchedule batches = config.batches(done);
  const std::int64_t updates = std::max(config.train_iters, done.updates), samples = batches.consumed_after(updates);
  std::vector<std::int64_t> sizes = config.micro_batch_sizes();
  for (std::int64_t& size : sizes) size = std::min(size, config.largest_share());
  const std::int64_t of_epoch = (epoch + batches.largest() - 1) / batches.largest();
  return fmt::format("{} an update{}, {} at a time; {} {} {}, {:.1f} epochs of {}",
                     counted(batches.largest(), "sample"), batches.is_constant() ? "" : " in the end",
                     fmt::join(sizes, ", then "), counted(updates, "update"), updates == 1 ? "reads" : "read",
                     counted(samples, "sample"), static_cast<double>(samples) / static_cast<double>(epoch),
                     counted(of_epoch, "update"));
}

// Memory in a line, or in a table for several stages.
std::string text_of_memory(const TrainConfig& config, std::span<const RankMemory> memory) {
  if (config.output.verbose || config.layout.pipeline_parallel > 1) return memory_table(memory);
  const RankMemory* largest = &memory.front();
  for (const RankMemory& rank : memory) {
    if (rank.needed() > largest->needed()) largest = &rank;
  }
  const auto readable = [](std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); };
  std::vector<std::string> kinds;
  for (std::size_t kind = 0; kind < kMemoryKinds.size(); ++kind) {
    if (largest->of_kind[kind] == 0) continue;
    kinds.push_back(fmt::format("{} {}", name_of(kMemoryKinds[kind]), readable(largest->of_kind[kind])));
  }
  for (const auto& [name, bytes] : RankMemory::others()) {
    if (largest->*bytes > 0) kinds.push_back(fmt::format("{} {}", name, readable(largest->*bytes)));
  }
  return wrapped_list(fmt::format("memory{} {}, all taken by the end of the first step",
                                  memory.size() > 1 ? " of a rank" : "", readable(largest->total())),
                      kinds);
}

}  // namespace

std::string StartText::text(const Backend& backend) const {
  const ModelConfig& model = trainer.task().config;
  const std::int64_t epoch = trainer.task().training->samples_per_epoch();
  std::vector<std::string> lines;
  if (config.output.verbose) {
    TrainConfig shown = config;
    shown.model.config = shown.model.model_for(shown.model.config.vocab_size);
    lines.push_back(value_table(fields_of(shown)));
  }
  lines.push_back(fmt::format(
      "{} with {} parameters: {}, hidden {}, {}, {}, vocabulary {} (padded to {})", text_of_kind(model),
      readable_count(static_cast<double>(model.parameters())), counted(model.num_layers, "layer"), model.hidden_size,
      counted(model.num_attention_heads, "head"), counted(model.max_position_embeddings, "position"), model.vocab_size,
      model.padded_vocab_size(config.vocabulary_ranks())));
  lines.push_back(text_of_origin(config, checkpoint));
  lines.push_back(
      fmt::format("{} of {} an epoch", counted(epoch, "training sample"), counted(config.model.seq_length, "token")));
  lines.push_back(trainer.task().split_description);
  if (!trainer.task().validation && !trainer.task().scores && config.output.eval_interval > 0) {
    lines.push_back("validates on nothing: --split leaves nothing for it");
  }
  lines.push_back(text_of_batches(config, checkpoint, epoch));
  const std::string settings = backend.settings();
  const std::string_view instructions = backend.name() == "cpu" ? instructions_in_use().name : "";
  lines.push_back(
      fmt::format("back end {}{}, {}{}{}{}", backend.name(),
                  instructions.empty() ? "" : fmt::format(" ({})", instructions), counted(thread_count(), "thread"),
                  config.layout.mesh().ranks() > 1 ? " in each rank" : "", settings.empty() ? "" : ", ", settings));
  if (config.rows_of_logits() == 0) {
    lines.push_back(fmt::format("logits {} at a time, since memory allows it (--logits-chunk)",
                                counted(trainer.executor().options().logits_chunk, "row")));
  }
  if (const std::int64_t kept = *trainer.executor().options().kept_layers; !config.kept_layers() && kept > 0) {
    lines.push_back(
        fmt::format("activations of up to {} of a stage kept whole, since memory allows it (--keep-activations)",
                    counted(kept, "layer")));
  }
  lines.push_back(ranks);
  lines.push_back(teratron::text_of(trainer.pipeline()));
  lines.push_back(text_of_memory(config, memory));
  lines.push_back(text_of_settings(config, checkpoint));
  lines.push_back(config.output.save.empty() ? "saves nothing: there is no --save"
                                             : fmt::format("saves to '{}'", config.output.save.string()));
  std::erase(lines, "");
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string text_of_progress(const TrainConfig& config, const CheckpointInfo* checkpoint, std::int64_t done,
                             bool has_work) {
  if (checkpoint == nullptr) return "";
  if (!has_work && checkpoint->run.kind == RunKind::kFinetuning) {
    const std::int64_t epochs = done / std::max<std::int64_t>(config.output.eval_interval, 1);
    return fmt::format("nothing to train: '{}' has done its {}, {}; choose another --save to train again",
                       config.output.load.string(), counted(epochs, "epoch"), counted(done, "update"));
  }
  if (!has_work && done < config.train_iters) {
    return fmt::format(
        "nothing to do: '{}' has ended after {} of {} by --early-stop {}; give a larger one, or 0, to go on",
        config.output.load.string(), counted(done, "iteration"), config.train_iters, config.output.early_stop);
  }
  if (!has_work) {
    return fmt::format("nothing to do: '{}' has done {}, and --train-iters is {}; give a larger one to go on",
                       config.output.load.string(), counted(done, "iteration"), config.train_iters);
  }
  std::string text = fmt::format("resuming after iteration {} of {}", done, config.train_iters);
  const std::optional<TrainConfig> before = settings_of(*checkpoint);
  if (before && before->train_iters < config.train_iters) {
    text += fmt::format("; --train-iters was {}: {}", before->train_iters,
                        future_of_learning_rate(config, applied_updates(checkpoint->state)));
  }
  return text;
}

}  // namespace teratron
