#include "runtime/weight_use.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "model/family.h"
#include "model/label_names.h"

namespace teratron {
namespace {

enum class HeadRule {
  kAny,     // any head: it stays, or is not read, or the command trains its own
  kNeeded,  // the head of the task
  kMasked,  // of a BERT: the head that predicts masked tokens
};

struct Rule {
  WeightUse use;
  std::string_view command;            // as users type it
  std::optional<bool> continues_text;  // the model (model/family.h); nullopt: any
  HeadRule head = HeadRule::kAny;
  std::optional<RunKind> run;  // kind of run that it resumes; nullopt: needs no run
};
constexpr Rule kRules[] = {
    {WeightUse::kTrainFinetune, "train --finetune", {}, HeadRule::kAny, {}},
    {WeightUse::kTrainLoad, "train --load", {}, HeadRule::kAny, RunKind::kTraining},
    {WeightUse::kFinetune, "finetune", false, HeadRule::kAny, {}},
    {WeightUse::kFinetuneAgain, "finetune", false, HeadRule::kNeeded, RunKind::kFinetuning},
    {WeightUse::kEvalLoss, "eval loss", {}, HeadRule::kMasked, {}},
    {WeightUse::kEvalWikitext103, "eval wikitext103", true, HeadRule::kAny, {}},
    {WeightUse::kEvalLambada, "eval lambada", true, HeadRule::kAny, {}},
    {WeightUse::kEvalMultipleChoice, "eval multiple-choice", true, HeadRule::kAny, {}},
    {WeightUse::kEvalTask, "eval", false, HeadRule::kNeeded, {}},
    {WeightUse::kGenerate, "generate", true, HeadRule::kAny, {}},
    {WeightUse::kEmbed, "embed", false, HeadRule::kAny, {}},
    {WeightUse::kFillMask, "fill-mask", false, HeadRule::kMasked, {}},
};

[[noreturn]] void throw_other_kind(const Rule& rule, const WeightSource& source, std::string_view task) {
  const std::string folder = source.folder.string();
  if (!*rule.continues_text) {
    throw_user_error("the model in '{}' is of type {}, and {}{}{} needs a BERT; name a BERT's folder", folder,
                     source.model.family().name, rule.command, task.empty() ? "" : " ", task);
  }
  const std::string lack = rule.use == WeightUse::kGenerate
                               ? "there is nothing to generate"
                               : fmt::format("it has no loss of a text, which `teratron {}` measures", rule.command);
  throw_user_error(
      "the model in '{}' is a BERT, which reads texts and continues none: {}. `teratron train` prints its losses of "
      "pre-training, and `eval loss` those of other texts; `fill-mask` predicts masked words, `embed` makes vectors of "
      "texts with it, `finetune` trains it for a task, and `eval` mnli, qqp, "
      "squad1, squad2, race, classify, tag and embed score that",
      folder, lack);
}

// Names the command that resumes this run, or starts from its weights.
[[noreturn]] void throw_other_run(const Rule& rule, const WeightSource& source, std::string_view task) {
  const std::string folder = source.folder.string();
  if (rule.use == WeightUse::kFinetuneAgain) {
    throw_user_error(
        "'{}' holds a run of `teratron {}`, which `finetune --task {}` does not go on with; choose another --save (its "
        "weights can be started from: --load)",
        folder, text_of(source.run), task);
  }
  if (source.run.kind == RunKind::kFinetuning) {
    throw_user_error(
        "'{0}' holds a run of `teratron {1}`, which train does not go on with: that command does when it is given "
        "again. To train its encoder further on texts: train --finetune {0}",
        folder, text_of(source.run));
  }
  throw_user_error(
      "'{0}' holds weights alone (they were converted, or saved without the optimizer's state), and no run to go on "
      "with; to start one from them: train --finetune {0}",
      folder);
}

void require_head(const WeightSource& source, std::string_view task, const ModelConfig& needed) {
  const ModelConfig& model = source.model;
  const std::string folder = source.folder.string();
  if (!source.unusable_head.empty()) {
    throw_user_error(
        "the head of the model in '{0}' cannot be used: {1}; `teratron finetune --task {2} --load {0}` "
        "trains another one",
        folder, source.unusable_head, task);
  }
  if (model.head != needed.head || !source.drawn.empty()) {
    throw_user_error("the model in '{0}' was not trained for {1}; `teratron finetune --task {1} --load {0}` does that",
                     folder, task);
  }
  if (!tells_labels(needed.head)) return;
  const std::vector<std::string>& names = model.label_names;
  if (model.num_labels == needed.num_labels && rows_by_label(names, needed.label_names)) return;
  const auto is_unknown = [&](const std::string& name) {
    return std::ranges::none_of(needed.label_names,
                                [&](const std::string& label) { return is_same_label(name, label); });
  };
  const auto unknown = std::ranges::find_if(names, is_unknown);
  const std::string other = unknown == names.end() ? "" : fmt::format("; '{}' is none of them", *unknown);
  throw_user_error(
      "the model in '{0}' was not trained for {1}; `teratron finetune --task {1} --load {0}` does that. It predicts "
      "{2}, "
      "and {1} has {3}{4}. If they mean the same, name them so in its config.json (id2label)",
      folder, task, text_of_labels(model.num_labels, names), text_of_labels(needed.num_labels, needed.label_names),
      other);
}

void require_masked_head(const Rule& rule, const WeightSource& source) {
  const bool is_drawn =
      std::ranges::any_of(source.drawn, [](const std::string& name) { return name.starts_with("cls.predictions"); });
  if (source.model.family().continues_text || (source.model.head == ModelHead::kPretraining && !is_drawn)) return;
  throw_user_error(
      "the model in '{}' has no head that predicts masked words, which `teratron {}` needs; take a BERT of `teratron "
      "train`, a BertForMaskedLM or a BertForPreTraining",
      source.folder.string(), rule.command);
}

}  // namespace

void require_usable(WeightUse use, const WeightSource& source, std::string_view task, const ModelConfig& needed) {
  const Rule& rule = *std::ranges::find(kRules, use, &Rule::use);
  if (rule.run) {
    const bool is_run = source.run.kind == *rule.run && source.has_optimizer;
    const bool is_of_task = source.run.task.empty() || source.run.task == task;
    if (!is_run || !is_of_task) throw_other_run(rule, source, task);
  }
  if (rule.continues_text && source.model.family().continues_text != *rule.continues_text)
    throw_other_kind(rule, source, task);
  const bool is_encoder_enough = use == WeightUse::kEvalTask && needed.head == ModelHead::kVectors;
  if (rule.head == HeadRule::kNeeded && !is_encoder_enough) require_head(source, task, needed);
  if (rule.head == HeadRule::kMasked) require_masked_head(rule, source);
}

std::string note_of_unnamed_labels(const WeightSource& source, const ModelConfig& needed) {
  const ModelConfig& model = source.model;
  const bool are_taken = tells_labels(needed.head) && model.head == needed.head &&
                         model.num_labels == needed.num_labels && model.label_names.empty() &&
                         !needed.label_names.empty();
  if (!are_taken || source.run.kind == RunKind::kFinetuning) return "";
  return fmt::format(
      "note: the labels of the model in '{}' have no names (id2label); they are taken as {}, in this order",
      source.folder.string(), fmt::join(needed.label_names, ", "));
}

}  // namespace teratron
