#include "train/config/config.h"

#include <numeric>

#include "data/data_path.h"
#include "model/family.h"
#include "options/output.h"
#include "settings/adapter_settings.h"

namespace teratron {

namespace {

constexpr Flag kDataPath{"data-path"}, kValidDataPath{"valid-data-path"}, kPacking{"packing"},
    kResetAttentionMask{"reset-attention-mask"}, kDpo{"dpo"}, kLoraRank{"lora-rank"};

Faults data_faults(const TrainConfig& config) {
  Faults faults = data_path_faults(kDataPath, config.data_path);
  faults.add(data_path_faults(kValidDataPath, config.valid_data_path));
  const std::vector<double> weights = parse_split(config.split.weights);
  faults.add_if(
      !config.valid_data_path.empty() && weights.size() > 1 && weights[0] < std::reduce(weights.begin(), weights.end()),
      "{} {} holds documents out, but with {} all of {} is trained on; leave one of the two out", Flag{"split"},
      config.split.weights, kValidDataPath, kDataPath);
  faults.add_if(config.documents.packing == Packing::kBestFit && !config.documents.has_first_keys() &&
                    config.model.config.family().continues_text,
                "{} best-fit puts documents side by side that must not see one another; add {}", kPacking,
                kResetAttentionMask);
  return faults;
}

Faults preference_faults(const TrainConfig& config) {
  Faults faults;
  if (!config.documents.dpo) return faults;
  faults.add_if(!config.model.config.adapters.active(),
                "{} compares the model with itself without adapters, and has none; give it some by {} N, such as 16",
                kDpo, kLoraRank);
  faults.add_if(config.pipeline.vocabulary_parallel && !config.pipeline.token_slices.empty(),
                "{} needs the losses of a whole sequence before the first gradient, and {} makes them slice by slice; "
                "leave out that or {}",
                kDpo, Flag{"vocabulary-parallel"}, Flag{"token-slices"});
  return faults;
}

// Flags that BERT's samples need, and flags for models that continue text.
Faults bert_faults(const TrainConfig& config) {
  constexpr Flag kBert{"model-type"};
  Faults faults;
  if (config.model.config.family().continues_text) return faults;
  faults.add_if(config.model.tokenizer.empty(),
                "{} bert needs {} DIR with its WordPiece vocabulary: samples have [CLS], [SEP] and [MASK]", kBert,
                Flag{"tokenizer"});
  faults.add_if(config.model.config.kind != encoder_family().kind,
                "a {} is fine-tuned, and not pre-trained: the samples of pre-training are BERT's ({} bert)",
                config.model.config.family().title, kBert);
  faults.add_if(config.documents.has_first_keys() || config.documents.has_position_ids() ||
                    config.documents.eod_mask_loss || config.documents.packing != Packing::kStream,
                "{}, {}, {}, {}, {} and {} are for models that continue text; each of BERT's samples is from one "
                "document. Leave them out",
                kResetAttentionMask, Flag{"reset-position-ids"}, Flag{"eod-mask-loss"}, kPacking, Flag{"sft"}, kDpo);
  faults.add_if(!config.output.sample_prompts.empty(), "BERT does not continue text; leave out {}",
                Flag{"sample-prompt"});
  return faults;
}

// A list of corpora. Patterns are replaced at once: a resumed run keeps its shards.
Field& add_corpora_field(FieldList& list, std::string name, std::vector<std::string>& words, std::string help) {
  Field& field = list.add(std::move(name), &words, "PREFIX", std::move(help));
  field.when_set = [&words] { words = without_patterns(words); };
  return field.of(FieldScope::kInput);
}

}  // namespace

Faults optimizer_backend_faults(const TrainConfig& config) {
  constexpr Flag kOptimizer{"optimizer"};
  Faults faults;
  faults.add_if(config.optimizer.kind == OptimizerKind::kMuon && config.backend.kind == BackendKind::kCuda,
                "{} muon does not run on the CUDA back end yet; take {} adamw, or CPUs", kOptimizer, kOptimizer);
  return faults;
}

std::string TrainConfig::parts() const {
  return split.weights.empty() && !valid_data_path.empty() ? "1" : split.parts();
}

Faults TrainConfig::faults() const {
  Faults faults = StepSettings::faults();
  faults.add(layout.execution_faults());
  faults.need_between({"seed"}, seed, 0);
  faults.add(optimizer.faults(train_iters));
  faults.add(optimizer_backend_faults(*this));
  faults.add(split.faults());
  faults.add(data_faults(*this));
  faults.add(documents.faults(model.tokenizer));
  faults.add(bert.faults());
  faults.add(bert_faults(*this));
  faults.add(preference_faults(*this));
  faults.add(output.faults());
  faults.add_if(model.config.adapters.active() && output.finetune.empty() && output.load.empty(),
                "{} trains adapters beside weights that are there; name their folder: {} DIR", kLoraRank,
                Flag{"finetune"});
  faults.add(failures.faults(output.save, config_file));
  faults.add_if(pipeline.chooses_micro_batches(),
                "{} is joint, which 'teratron plan' answers for a cluster; give the cuts that it prints, such as "
                "2x512,512+1x1024, or auto",
                Flag{"token-slices"});
  faults.add_if(pipeline.cuts_by_documents() && documents.packing != Packing::kBestFit,
                "{} {} cuts between packed documents; add {} best-fit, or cut by uniform:N", Flag{"token-slices"},
                pipeline.token_slices, kPacking);
  faults.add_if(!output.sample_prompts.empty() && model.tokenizer.empty(), "{} needs a tokenizer: {} DIR",
                Flag{"sample-prompt"}, Flag{"tokenizer"});
  return faults;
}

void add_update_fields(FieldList& list, TrainConfig& c) {
  list.group("Training");
  add_seq_length_field(list, c.model);
  add_micro_batch_size_field(list, c.batch);
  add_global_batch_fields(list, c.batch);
  list.add("train-iters", &c.train_iters, "N", "updates in all").summarised();
  add_optimizer_fields(list, c.optimizer);
  list.add("seed", &c.seed, "N", "of initial weights, dropout and the order of the data").of(FieldScope::kData);

  list.group("Precision");
  add_training_precision_fields(list, c.backend);
  add_loss_scaling_fields(list, c.optimizer.loss_scaling);

  add_training_layout_fields(list, c.layout);
  add_pipeline_fields(list, c.pipeline);
}

FieldList fields_of(TrainConfig& c) {
  FieldList list;
  add_model_fields(list, c.model);
  add_adapter_fields(list, c.model.config.adapters, c.model.lora_targets, c.backend.weight_tiles);
  add_update_fields(list, c);

  list.group("Data", FieldScope::kData);
  add_corpora_field(
      list, "data-path", c.data_path,
      "tokens, as PREFIX.bin and PREFIX.idx (teratron data tokenize); several: shards of one corpus; with "
      "weights, 0.7 a 0.3 b: a blend")
      .summarised()
      .required = true;
  add_corpora_field(list, "valid-data-path", c.valid_data_path,
                    "the same, to validate on, from the first token on; all of --data-path is trained on then");
  add_tokenizer_field(list, c.model);
  add_split_fields(list, c.split);
  list.add("override-data", &c.split.override_data, "",
           "let a resumed run go on with another seed, split, sequence length or data set")
      .of(FieldScope::kStart);
  add_document_fields(list, c.documents);
  add_bert_fields(list, c.bert);

  add_output_fields(list, c.output);
  list.group("Failures");
  add_watchdog_field(list, c.failures);
  add_restart_fields(list, c.failures);
  add_machine_fields(list, c);
  return list;
}

std::string to_toml(TrainConfig config) { return to_toml(fields_of(config)); }

}  // namespace teratron
