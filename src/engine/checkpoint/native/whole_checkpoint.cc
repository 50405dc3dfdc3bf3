#include "checkpoint/native/whole_checkpoint.h"

#include "base/error.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/integrity.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/stored_tensor.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

std::vector<Parameter> parameters_in(const TensorFiles& weights, const ModelConfig& config, const fs::path& folder) {
  if (static_cast<std::size_t>(config.num_layers) > weights.entries().size()) {
    throw_user_error("'{}' has fewer tensors than its model has layers", folder.string());
  }
  if (config.adapters.active()) {
    throw_user_error(
        "'{}' holds adapters, and no whole model; `teratron convert --merge --from teratron --to teratron` makes one "
        "of them and the model that they are beside",
        folder.string());
  }
  std::vector<Parameter> parameters = declared_parameters(config);
  std::vector<ExpectedTensor> expected;
  for (const Parameter& parameter : parameters) expected.push_back({parameter.name, stored_shape(parameter)});
  const std::vector<std::string> faults = compare_tensors(weights.entries(), expected);
  if (!faults.empty()) {
    throw_user_error("'{}' does not hold its model: {}", folder.string(), summary_of(faults));
  }
  return parameters;
}

}  // namespace

WholeCheckpoint::WholeCheckpoint(const fs::path& checkpoint)
    : folder_(find_checkpoint(checkpoint)),
      manifest_(with_advice(folder_, [this] { return read_manifest(folder_); })),
      weights_(with_advice(folder_,
                           [this] { return TensorFiles(folder_, manifest_, TensorKind::kModel, /*verify=*/true); })),
      parameters_(parameters_in(weights_, manifest_.model, folder_)) {}

void WholeCheckpoint::require_intact() const {
  with_advice(folder_, [this] {
    for (const auto& [name, record] : manifest_.files) {
      if (is_tensor_file(name, TensorKind::kOptimizer)) continue;
      const std::vector<std::string> faults = faults_of_file(folder_ / name, record);
      if (!faults.empty()) throw DamagedCheckpoint(summary_of(faults));
    }
  });
}

void WholeCheckpoint::require_finite() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const TensorFiles::Location& from = at(i);
    teratron::require_finite(from.bytes(), *from.entry->dtype, parameters_[i].name, folder_);
    from.release();
  }
}

void WholeCheckpoint::pass_on(std::size_t parameter, const ByteSink& sink) const {
  const TensorFiles::Location& from = at(parameter);
  stream(from.bytes(), sink);
  from.release();
}

}  // namespace teratron
