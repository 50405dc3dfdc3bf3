// The weights that a new run starts from: those of a checkpoint of ours, or of a folder of Hugging Face's.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/native/checkpoint.h"

namespace teratron {

struct WeightSource {
  std::filesystem::path folder;  // of the one checkpoint, or of the Hugging Face model
  bool is_hugging_face = false;
  RunOrigin run{.kind = RunKind::kConversion, .task = {}};  // of a checkpoint
  ModelConfig model;
  TrainingState state;              // of the training that wrote a checkpoint; empty for Hugging Face's folders
  std::uint64_t checked_bytes = 0;  // that have checksums
  bool has_optimizer = false;       // beside the weights, so that a run can go on
  bool has_tokenizer = false;       // holds_tokenizer() of `folder`
  std::vector<std::string> drawn;   // tensors that a Hugging Face model lacks, of heads; they get initial weights
  std::string unusable_head;        // why a Hugging Face model's head is none of ours, so that `model` lacks it
};

WeightSource source_of(const CheckpointInfo& checkpoint);
// `path`: a folder that was saved to, one checkpoint's folder, or one that save_pretrained wrote. UserError: none of
// them, damaged, or a model that ours is not.
WeightSource find_weights(const std::filesystem::path& path);

// Names of the parameters that are drawn when `model` takes its weights from `path`: if its head is another than there,
// that head and other missing parameters; otherwise WeightSource::drawn. A classification head of other labels is
// another head. UserError as find_weights, or if the models differ in more than their heads.
std::vector<std::string> drawn_weights(const std::filesystem::path& path, const ModelConfig& model);

// A warning that names them; empty where there are none.
std::string text_of_drawn(const std::filesystem::path& folder, const std::vector<std::string>& drawn);
// Warning of drawn_weights(), with the reason why the stored head cannot be used.
std::string warning_of_drawn(const std::filesystem::path& path, const ModelConfig& model);

// Reads the weights alone, into parameters of any layout; each rank reads its own parts. `verify`: compare the
// checksums that our checkpoints have, and refuse values that are not finite; one rank is enough. A model with another
// head than the stored one takes the common parts: the encoder, and the pooler where both have one. Labels that have
// names there are put in the order of `config`. Returns those of `parameters` that it does not find there, which stay
// as they are (Executor::initialize draws them). UserError as find_weights and load_checkpoint.
std::vector<Parameter*> load_weights(const std::filesystem::path& path, const ModelConfig& config,
                                     std::span<Parameter* const> parameters, Backend& backend, bool verify = true);

}  // namespace teratron
