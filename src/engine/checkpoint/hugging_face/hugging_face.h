// Models to and from the folders that Hugging Face's transformers read and write (from_pretrained, save_pretrained):
// config.json, model.safetensors and the tokenizer's files. Weights keep their values and pass a few MB at a time.
#pragma once

#include <filesystem>
#include <span>

#include "model/config.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

// `checkpoint` as load_checkpoint takes it; writes into `folder`, which is created; the files of an export that was
// ended are written anew (export_folder.h). UserError: no checkpoint, or a damaged one, or values that are not finite;
// `folder` is not empty; Hugging Face has no such model (a BERT with its norms first). EnvironmentError: a full disk,
// no permission.
// Weights are one file, or files of at most `max_file_bytes` with model.safetensors.index.json beside them; a larger
// tensor has its own. 0: one file.
void export_to_hugging_face(const std::filesystem::path& checkpoint, const std::filesystem::path& folder,
                            std::uint64_t max_file_bytes = 0);

// Makes `folder`'s model checkpoint 0 (weights only) under `root`, which must not hold checkpoints yet; returns the
// checkpoint's folder. 16-bit weights become fp32. An end that the model was saved without is drawn
// (HuggingFaceFolder). UserError: not a model of a kind that we have, or one that computes what ours does not (all
// reasons at once), files missing or unsound, values that are not finite. EnvironmentError as above.
std::filesystem::path import_from_hugging_face(const std::filesystem::path& folder, const std::filesystem::path& root);

// Fills the weights of `parameters`, those of the whole model or some of them in its order, as load_checkpoint does,
// straight from `folder`. One matrix at a time is held in host memory. `verify`: refuse values that are not finite.
// UserError as above, or another model than `config`.
void load_from_hugging_face(const std::filesystem::path& folder, const ModelConfig& config,
                            std::span<Parameter* const> parameters, Backend& backend, bool verify = true);

}  // namespace teratron
