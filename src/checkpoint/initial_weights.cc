#include "checkpoint/initial_weights.h"

#include <fmt/ranges.h>

#include "checkpoint/folders.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tokenizer_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

bool is_hugging_face_folder(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "config.json", error) && !fs::exists(path / kTrackerFile, error) &&
         !fs::exists(path / kManifestFile, error);
}

}  // namespace

WeightSource find_weights(const fs::path& path) {
  WeightSource source{.folder = path, .is_hugging_face = is_hugging_face_folder(path)};
  if (source.is_hugging_face) {
    const HuggingFaceFolder there(path);
    source.model = there.model();
    source.drawn = there.drawn();
  } else {
    const CheckpointInfo info = read_checkpoint_info(path);
    source.folder = info.folder;
    source.model = info.model;
  }
  source.has_tokenizer = !find_tokenizer_files(source.folder).empty();
  return source;
}

std::string text_of_drawn(const fs::path& folder, const std::vector<std::string>& drawn) {
  if (drawn.empty()) return "";
  return fmt::format("warning: '{}' was saved without {}; they are drawn, as initial weights are", folder.string(),
                     fmt::join(drawn, ", "));
}

void load_weights(const fs::path& path, const ModelConfig& config, std::span<Parameter* const> parameters,
                  Backend& backend, bool verify) {
  if (is_hugging_face_folder(path)) return load_from_hugging_face(path, config, parameters, backend);
  load_checkpoint(path, config, parameters, backend, {.optimizer = false, .verify = verify});
}

}  // namespace teratron
