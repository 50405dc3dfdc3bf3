// A checkpoint made of a whole model in files of another format.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/dtype.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "checkpoint/tokenizer_files.h"
#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

struct ImportedWeights {
  const ModelConfig& model;
  const std::vector<Parameter>& parameters;                   // of the whole model
  std::function<DType(std::size_t)> dtype_of;                 // a type that holds every stored value of a parameter
  std::function<void(std::size_t, const ByteSink&)> pass_on;  // its bytes in that type, in our order
};

// Writes the weights as checkpoint 0 under `root`, which must not hold checkpoints yet; returns its folder.
// 16-bit weights become fp32. UserError: a value that is not finite, checkpoints under `root`. EnvironmentError: a full
// disk, no permission.
std::filesystem::path write_import(const ImportedWeights& weights, const FileContents& tokenizer,
                                   const std::filesystem::path& root);

}  // namespace teratron
