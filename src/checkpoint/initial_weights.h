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
  ModelConfig model;
  TrainingState state;              // of the training that wrote a checkpoint; Hugging Face's folders know of none
  std::uint64_t checked_bytes = 0;  // that have checksums
  bool has_tokenizer = false;       // its files lie in `folder`
  std::vector<std::string> drawn;   // tensors that a Hugging Face model lacks, of heads; they get initial weights
};

// `path`: a folder that was saved to, one checkpoint's folder, or one that save_pretrained wrote. UserError: none of
// them, damaged, or a model that ours is not.
WeightSource find_weights(const std::filesystem::path& path);

// The names of what `model` takes from nowhere when its weights are those in `path`, and what is therefore drawn: with
// the head of a task that the model there does not have, that head and what else it lacks; otherwise
// WeightSource::drawn. UserError as find_weights, or if the models differ in more than their heads.
std::vector<std::string> drawn_weights(const std::filesystem::path& path, const ModelConfig& model);

// A warning that names them; empty where there are none.
std::string text_of_drawn(const std::filesystem::path& folder, const std::vector<std::string>& drawn);

// The weights alone, into parameters of any layout; each rank reads its own parts. `verify`: compare the checksums that
// our checkpoints have, and refuse values that are not finite; one rank is enough. A model with the head of a task
// takes what it has in common with one that ends otherwise: the encoder, and the pooler where both have one. Returns
// those of `parameters` that it does not find there, which stay as they are (Executor::initialize draws them).
// UserError as find_weights and load_checkpoint.
std::vector<Parameter*> load_weights(const std::filesystem::path& path, const ModelConfig& config,
                                     std::span<Parameter* const> parameters, Backend& backend, bool verify = true);

}  // namespace teratron
