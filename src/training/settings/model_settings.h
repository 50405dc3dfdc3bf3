// Settings of the model that a command makes and of the sequences that it reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "base/faults.h"
#include "model/config.h"
#include "options/fields.h"

namespace teratron {

inline constexpr double kInitByWidth = std::numeric_limits<double>::infinity();  // no user can give this number

struct ModelSettings {
  ModelSettings();

  std::string preset = "124M";  // sets what ModelPreset::apply_to() does; explicit values override it
  ModelConfig config;           // vocab_size 0: the tokenizer's; max_position_embeddings 0: seq_length;
                                // init_method_std kInitByWidth: init_std_by_width()
  std::int64_t seq_length = 1024;
  std::filesystem::path tokenizer;  // empty: none
  std::string lora_targets;         // names of layers with adapters, by commas; empty: those of `config`, or the usual

  // Whether the model still has the values of the preset.
  bool has_preset_shape() const;
  // Whether a record of the settings must name the preset: the model has its shape, or its scaled rotary positions,
  // for which there are no flags.
  bool needs_preset() const;
  // Model with vocabulary, positions and initial weights filled in. `data_vocab_size` is used where the user gave no
  // vocabulary.
  ModelConfig model_for(std::int64_t data_vocab_size) const;
  // Vocabulary size of the tokenizer, which it reads, or of --vocab-size. UserError: neither is given, or they
  // contradict each other.
  std::int64_t vocabulary_size() const;
  Faults faults(std::int64_t tensor_parallel) const;
};

void add_model_fields(FieldList& list, ModelSettings& settings);  // under their own heading
void add_seq_length_field(FieldList& list, ModelSettings& settings);
void add_tokenizer_field(FieldList& list, ModelSettings& settings);

}  // namespace teratron
