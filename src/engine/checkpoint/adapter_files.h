// Adapters on their way to other files: merged into the model that they are beside, and as PEFT's folders
// (adapter_config.json, adapter_model.safetensors or, read only, adapter_model.bin).
#pragma once

#include <filesystem>

namespace teratron {

// Each weight plus scale * B A of its adapters, in fp32 (fp64 where the model is): checkpoint 0, weights only, under
// `root`; returns its folder. `adapters` is a checkpoint of adapters. UserError: it is none, or is damaged; the model
// that it names is not there, or another one; `root` holds checkpoints. EnvironmentError: a full disk, no permission.
std::filesystem::path merge_adapters(const std::filesystem::path& adapters, const std::filesystem::path& root);

// Writes the adapters of a checkpoint to `folder`, new or empty, for PeftModel.from_pretrained.
void export_to_peft(const std::filesystem::path& adapters, const std::filesystem::path& folder);

// Makes checkpoint 0 under `root` of the adapters in PEFT's `folder`, which are of the model in `base`. UserError: a
// setting that ours do not have, tensors that are missing or unknown.
std::filesystem::path import_from_peft(const std::filesystem::path& folder, const std::filesystem::path& base,
                                       const std::filesystem::path& root);

}  // namespace teratron
