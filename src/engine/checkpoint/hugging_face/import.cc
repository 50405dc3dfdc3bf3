#include "base/error.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/imported_weights.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_parts.h"
#include "checkpoint/tokenizer_files.h"
#include "nn/parameter_state.h"

namespace teratron {

namespace fs = std::filesystem;

fs::path import_from_hugging_face(const fs::path& folder, const fs::path& root) {
  const HuggingFaceFolder source(folder);
  check_takes_conversion(root, 0);
  if (!source.unusable_head().empty()) {
    throw_user_error(
        "the head of the model in '{}' is none of Teratron's, and would be lost: {}. Its encoder alone can be "
        "converted: BertModel.from_pretrained(IN).save_pretrained(OUT) writes that",
        folder.string(), source.unusable_head());
  }
  source.require_finite();

  const ImportedWeights weights{.model = source.model(),
                                .parameters = source.parameters(),
                                .dtype_of = [&](std::size_t i) { return source.dtype(i); },
                                .pass_on = [&](std::size_t i, const ByteSink& sink) { source.pass_on(i, sink); }};
  return write_import(weights, find_tokenizer_files(folder), root);
}

void load_from_hugging_face(const fs::path& folder, const ModelConfig& config, std::span<Parameter* const> parameters,
                            Backend& backend, bool verify) {
  const HuggingFaceFolder source(folder);
  check_same_model(folder, source.model(), config);
  LabelRows labels(source.model(), config);
  if (verify) source.require_finite();
  std::vector<std::byte> whole;
  std::size_t i = 0;
  for (Parameter* const here : parameters) {
    const Parameter& parameter = *here;
    while (i < source.parameters().size() && source.parameters()[i].name != parameter.name) ++i;
    check(i < source.parameters().size(), "parameters of the model, in its order");
    if (!is_held(parameter)) continue;
    whole.clear();
    source.pass_on(i, appending_sink(whole));
    store_weights(backend, parameter, [&](TensorRef part) {
      load_tensor_part(parameter, part, backend, labels.ordered(parameter, whole), source.dtype(i));
    });
  }
}

}  // namespace teratron
