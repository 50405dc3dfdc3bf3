#include "finetune/task_reading.h"

#include <algorithm>
#include <limits>

#include "checkpoint/hugging_face/sentence_transformer.h"
#include "checkpoint/initial_weights.h"
#include "options/reading.h"

namespace teratron {
namespace {

std::vector<std::pair<std::string, std::optional<Pooling>>> trained_poolings() {
  std::vector<std::pair<std::string, std::optional<Pooling>>> choices = {{"auto", std::nullopt}};
  for (const auto& [name, pooling] : kPoolingNames) {
    if (can_be_trained(pooling)) choices.emplace_back(name, pooling);
  }
  return choices;
}

}  // namespace

TaskReading TaskReadingSettings::reading_for(TaskKind task, std::int64_t positions) const {
  const TaskReading usual = default_reading(task);
  TaskReading filled = given;
  if (filled.seq_length == 0) filled.seq_length = std::min(usual.seq_length, positions);
  if (filled.max_query_length == 0) filled.max_query_length = std::min(usual.max_query_length, filled.seq_length / 2);
  if (filled.doc_stride == 0) filled.doc_stride = std::min(usual.doc_stride, filled.seq_length / 4);
  return filled;
}

Faults TaskReadingSettings::faults() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Faults faults;
  faults.need_between({"max-query-length"}, given.max_query_length, 0, kMost);
  faults.need_between({"doc-stride"}, given.doc_stride, 0, kMost);
  faults.need_between({"max-answer-length"}, given.max_answer_length, 1, kMost);
  faults.need_between({"n-best"}, given.n_best, 1, kMost);
  return faults;
}

void add_label_fields(FieldList& list, TaskReading& reading) {
  list.add("label-column", &reading.label_column, "NAME",
           "classify: that of the label; embed: of a similarity; empty cells have none; tag: of the labels, in CoNLL "
           "files the column's number from 1, the last unless given, elsewhere the key, ner_tags unless given");
  list.add(
      "label-names", &reading.label_names, "NAME",
      "tag: names of labels that are numbers in JSON lines, in their order from 0 on; models have them in this order");
}

std::map<std::string, std::string> given_reading(TaskReadingSettings& settings, FieldList& fields) {
  std::map<std::string, std::string> flags;
  FieldList own;
  add_task_reading_fields(own, settings);
  own.remove(settings.given.label_names, settings.pooling);
  for (const Field& field : own) {
    if (fields.find(field.name)->given) flags[field.name] = field.value_text();
  }
  return flags;
}

void take_reading(const std::map<std::string, std::string>& run, const std::set<std::string>& named,
                  TaskReadingSettings& settings) {
  FieldList fields;
  add_task_reading_fields(fields, settings);
  std::vector<Setting> values;
  for (const auto& [flag, text] : run) {
    Field* field = named.contains(flag) ? nullptr : fields.find(flag);
    if (field != nullptr) values.push_back({.field = field, .values = {{.text = text}}});
  }
  FaultLines lines;
  apply_settings(fields, values, lines);
  throw_if_any(lines);
}

Pooling pooling_for(const TaskReadingSettings& settings, const std::filesystem::path& load) {
  if (settings.pooling) return *settings.pooling;
  if (load.empty()) return Pooling::kMean;
  std::optional<SentenceTransformer> folder = read_sentence_transformer(load);
  if (!folder) folder = learned_vectors(load, find_weights(load).model);
  return folder ? folder->pooling : Pooling::kMean;
}

void add_task_reading_fields(FieldList& list, TaskReadingSettings& s) {
  list.add(
      "text-column", &s.given.text_column, "NAME",
      "classify, embed: column, or key, of the text; tag: of CoNLL files the number of the column of words, from 1, "
      "or key of their list; unless given the first, and tokens");
  list.add("pair-column", &s.given.pair_column, "NAME",
           "that of a second text; empty: of classify there is none, and of embed it is pair");
  list.add("negative-column", &s.given.negative_column, "NAME",
           "embed: that of a text that does not belong to the first; empty: there is none");
  add_label_fields(list, s.given);
  list.add_choice("pooling", s.pooling, trained_poolings(),
                  "embed: a text's vector, the mean of its tokens' outputs, the output of [CLS], .., by "
                  "sentence-transformers' names; auto: as the folder of --load says, else mean");
  list.add("max-query-length", &s.given.max_query_length, "N",
           "SQuAD, RACE: tokens of a question, which loses its end; 0: 64 and 128, and at most half of a sequence");
  list.add("doc-stride", &s.given.doc_stride, "N",
           "SQuAD, tag: tokens that windows of a long text share; 0: 128, and at most a quarter of a sequence");
  list.add("max-answer-length", &s.given.max_answer_length, "N", "SQuAD: tokens of an answer");
  list.add("n-best", &s.given.n_best, "N", "SQuAD: beginnings and ends of a window that are put together");
  list.add("null-score-diff-threshold", &s.given.null_score_diff_threshold, "X",
           "SQuAD 2.0: there is no answer where its score is this much higher than the best answer's");
}

}  // namespace teratron
