#include "checkpoint/adapter_base.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/utf8.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/tensor_source.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Checksum of the names, types, shapes and bytes of all weights.
std::string checksum_of_weights(const fs::path& folder) {
  const std::unique_ptr<TensorSource> source = open_tensors_of(folder);
  std::string text;
  for (std::size_t i = 0; i < source->tensors().size(); ++i) {
    const SourceTensor& tensor = source->tensors()[i];
    if (tensor.is_of_optimizer) continue;
    std::string checksum = tensor.checksum;
    if (checksum.empty()) {
      Checksum bytes;
      source->pass_on(i, [&](std::span<const std::byte> piece) { bytes.update(piece); });
      checksum = bytes.digest();
    }
    text += fmt::format("{} {} {} {}\n", tensor.name, tensor.dtype_name, fmt::join(tensor.shape, "x"), checksum);
  }
  return checksum_of(text);
}

}  // namespace

AdapterBase adapter_base_of(const fs::path& path) {
  const WeightSource source = find_weights(path);
  if (source.model.adapters.active()) return source.run.base;
  const fs::path folder = fs::absolute(source.folder).lexically_normal();
  if (!is_utf8(folder.string())) {
    throw_user_error(
        "the name of '{}' is not UTF-8, so a checkpoint of adapters cannot name it as their base; rename the folder, "
        "or name it by a link to it",
        folder.string());
  }
  return {.folder = folder, .checksum = checksum_of_weights(folder)};
}

void require_base(const fs::path& folder, const AdapterBase& base) {
  const std::string where =
      fmt::format("'{}' holds adapters of the model in '{}'", folder.string(), base.folder.string());
  if (!is_there(base.folder)) {
    throw_user_error("{}, which is not there; put that model there again, or a link to it", where);
  }
  if (checksum_of_weights(base.folder) != base.checksum) {
    throw_user_error("{}, which is another one by now: its weights are not those that the adapters were trained beside",
                     where);
  }
}

void load_base(const fs::path& folder, const AdapterBase& base, const ModelConfig& config,
               std::span<Parameter* const> parameters, Backend& backend, bool verify) {
  if (!config.adapters.active()) return;
  if (verify) require_base(folder, base);
  std::vector<Parameter*> frozen;
  std::ranges::copy_if(parameters, std::back_inserter(frozen), &Parameter::frozen);
  ModelConfig whole = config;
  whole.adapters = {};
  load_weights(base.folder, whole, frozen, backend, verify);
}

}  // namespace teratron
