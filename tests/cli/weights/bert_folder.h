// A folder of Hugging Face's with a tiny BERT of a class, as transformers save it, made here: no Python is needed.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/philox.h"
#include "checkpoint/hugging_face_files.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::testing {

// The folder of tests/golden/bert_tiny with a vocabulary: w5, w6 and so on after the special tokens.
inline void write_golden_bert(const fs::path& folder) {
  make_folders(folder);
  const fs::path golden = fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / "bert_tiny";
  for (const char* name : {"config.json", "model.safetensors"}) fs::copy(golden / name, folder / name);
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int word = 5; word < 54; ++word) vocabulary += fmt::format("w{}\n", word);
  put_file(folder / "vocab.txt", vocabulary);
}

inline constexpr std::int64_t kTinyHidden = 8, kTinyPositions = 48;

struct TinyBertClass {
  std::string name = "BertForSequenceClassification";
  std::vector<std::string> labels;  // of texts or tokens: id2label; empty: LABEL_0, .., LABEL_2
  std::int64_t count = 3;           // where there are no names
};

class TinyBertFolder {
 public:
  explicit TinyBertFolder(TinyBertClass what) : what_(std::move(what)) {
    vocabulary_ = std::ranges::count(task_vocabulary(), '\n');
    const bool has_pooler = what_.name != "BertForMaskedLM" && what_.name != "BertForQuestionAnswering" &&
                            what_.name != "BertForTokenClassification";
    const std::string body = what_.name == "BertModel" ? "" : "bert.";
    add(body + "embeddings.word_embeddings.weight", {vocabulary_, kTinyHidden});
    add(body + "embeddings.position_embeddings.weight", {kTinyPositions, kTinyHidden});
    add(body + "embeddings.token_type_embeddings.weight", {2, kTinyHidden});
    add_norm(body + "embeddings.LayerNorm");
    const std::string layer = body + "encoder.layer.0.";
    for (const char* name :
         {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"}) {
      add_linear(layer + name, kTinyHidden, kTinyHidden);
    }
    add_norm(layer + "attention.output.LayerNorm");
    add_linear(layer + "intermediate.dense", 4 * kTinyHidden, kTinyHidden);
    add_linear(layer + "output.dense", kTinyHidden, 4 * kTinyHidden);
    add_norm(layer + "output.LayerNorm");
    if (has_pooler) add_linear(body + "pooler.dense", kTinyHidden, kTinyHidden);
    add_head();
  }

  // Changes before write().
  FileTensors tensors;
  Json changed_config = Json::object();  // keys that replace those of the class

  // The head says label `row` to whatever it reads.
  void always_answer(std::size_t row) {
    auto& bias = tensors.at("classifier.bias");
    std::vector<float> values(static_cast<std::size_t>(bias.shape[0]));
    values.at(row) = 50;
    bias.bytes = bytes_of(values);
  }

  void write(const fs::path& folder) const {
    make_folders(folder);
    Json config = {{"architectures", {what_.name}},
                   {"model_type", "bert"},
                   {"vocab_size", vocabulary_},
                   {"hidden_size", kTinyHidden},
                   {"num_hidden_layers", 1},
                   {"num_attention_heads", 2},
                   {"intermediate_size", 4 * kTinyHidden},
                   {"max_position_embeddings", kTinyPositions},
                   {"type_vocab_size", 2}};
    if (tells_labels()) {
      for (std::int64_t row = 0; row < count(); ++row) {
        const std::string name =
            what_.labels.empty() ? fmt::format("LABEL_{}", row) : what_.labels[static_cast<std::size_t>(row)];
        config["id2label"][fmt::format("{}", row)] = name;
        config["label2id"][name] = row;
      }
    }
    for (const auto& [key, value] : changed_config.items()) config[key] = value;
    put_file(folder / "config.json", config.dump());
    put_file(folder / "vocab.txt", task_vocabulary());
    write_tensors(folder / "model.safetensors", tensors);
  }

 private:
  bool tells_labels() const {
    return what_.name == "BertForSequenceClassification" || what_.name == "BertForTokenClassification";
  }
  std::int64_t count() const { return what_.labels.empty() ? what_.count : std::ssize(what_.labels); }

  static std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  void add(const std::string& name, std::vector<std::int64_t> shape, double middle = 0) {
    std::int64_t size = 1;
    for (const std::int64_t side : shape) size *= side;
    std::vector<float> values;
    for (std::int64_t i = 0; i < size; ++i) {
      values.push_back(static_cast<float>(middle + 0.3 * (static_cast<double>(random_.next_u32()) / 0x1p32 - 0.5)));
    }
    tensors[name] = {"F32", std::move(shape), bytes_of(values)};
  }
  void add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    add(name + ".weight", {outputs, inputs});
    add(name + ".bias", {outputs});
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {kTinyHidden}, 1);
    add(name + ".bias", {kTinyHidden});
  }
  void add_head() {
    if (what_.name == "BertForNextSentencePrediction") add_linear("cls.seq_relationship", 2, kTinyHidden);
    if (tells_labels()) add_linear("classifier", count(), kTinyHidden);
    if (what_.name == "BertForMultipleChoice") add_linear("classifier", 1, kTinyHidden);
    if (what_.name == "BertForQuestionAnswering") add_linear("qa_outputs", 2, kTinyHidden);
    if (what_.name != "BertForPreTraining" && what_.name != "BertForMaskedLM") return;
    add("cls.predictions.bias", {vocabulary_});
    add_linear("cls.predictions.transform.dense", kTinyHidden, kTinyHidden);
    add_norm("cls.predictions.transform.LayerNorm");
    if (what_.name == "BertForPreTraining") add_linear("cls.seq_relationship", 2, kTinyHidden);
  }

  const TinyBertClass what_;
  std::int64_t vocabulary_ = 0;
  RandomSequence random_{{.seed = 11}};
};

}  // namespace teratron::testing
