// The files of profiles and their keys.
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files/cache_folder.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/host/standard_streams.h"
#include "base/host/threads.h"
#include "model/family.h"
#include "profile/pipeline_profile.h"
#include "profile/processor.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

std::string cells_of(const ProfileRequest& request, int stages) {
  std::vector<std::int64_t> cells = request.cell_layers;
  if (cells.empty()) cells.assign(static_cast<std::size_t>(stages), request.model.num_layers / stages);
  return fmt::format("{}", fmt::join(cells, ","));
}

// Text of a layer in the key. It is empty for the layers of GPT-2 and BERT, so that the first profiles keep their keys.
std::string text_of_layer(const ModelConfig& model) {
  const TransformerLayerConfig layer = model.layer_config();
  const bool is_known = layer.num_key_value_heads == layer.num_attention_heads && !layer.gated && layer.window == 0 &&
                        layer.rotary.elements == 0 && layer.head_size * layer.num_attention_heads == layer.hidden_size;
  if (is_known) return model.untied_output ? "untied output" : "";
  return fmt::format("{}: {} key heads of {}, window {}, {} outputs", model.family().name, layer.num_key_value_heads,
                     layer.head_size, layer.window, model.untied_output ? "untied" : "tied");
}

// The first rank's text, on all ranks of the mesh.
std::string from_first_rank(const Mesh& mesh, const std::string& text) {
  return mesh.model->all_gather_host(mesh.data->all_gather_host(text).front()).front();
}

bool is_first_rank(const Mesh& mesh) { return mesh.model->rank() == 0 && mesh.data->rank() == 0; }

// The text of a profile that exists and fits the key; empty: it has to be measured.
std::string stored_text(const slicing::ProfileKey& key, const fs::path& file, bool named_by_user) {
  std::error_code error;
  if (!fs::exists(file, error)) return "";
  std::string text;
  try {
    text = read_file(file);
    slicing::require_key(slicing::profile_from_json(text, file), key, file);
  } catch (const UserError&) {
    if (named_by_user) throw;
    return "";
  }
  return text;
}

// Writes a profile to the cache. If that fails, the run goes on with a warning.
void keep_in_cache(const slicing::Profile& profile, const fs::path& path) {
  try {
    if (path.empty()) throw EnvironmentError("neither HOME nor XDG_CACHE_HOME says where profiles are kept");
    write_profile(profile, path);
  } catch (const std::runtime_error& error) {
    report_to_user(fmt::format("warning: the measured profile is not kept: {} (--profile FILE)", error.what()));
  }
}

// Settings besides the shapes that change times. Defaults are left out, so that the first profiles keep their keys.
std::string settings_of(const ProfileRequest& request, const Backend& backend) {
  std::string settings = backend.settings();
  const auto add = [&](std::string_view text) { settings += fmt::format("{}{}", settings.empty() ? "" : ", ", text); };
  if (request.kept_layers != 0) add(request.kept_layers ? "activations kept" : "activations kept as memory allows");
  if (request.packed_weights && !request.packed_weights->as_memory_allows) add("weights packed");
  if (const AdapterConfig& adapters = request.model.adapters; adapters.active()) {
    add(fmt::format("adapters of rank {} on {:#x}{}", adapters.rank, adapters.targets,
                    adapters.dropout > 0 ? " with dropout" : ""));
  }
  if (request.weight_tiles) add(fmt::format("frozen weights in {}", name_of(*request.weight_tiles)));
  return settings;
}

}  // namespace

slicing::ProfileKey profile_key(const ProfileRequest& request, const Mesh& mesh, const Backend& backend) {
  const ModelConfig& model = request.model;
  return {.processor = processor_name(backend),
          .backend = std::string(backend.name()),
          .ranks = request.ranks,
          .dtype = std::string(name_of(backend.compute_dtype())),
          .recompute = name_of(request.recompute),
          .dropout = fmt::format("{} {}", model.hidden_dropout, model.attention_dropout),
          .cell_layers = cells_of(request, mesh.pipeline->size()),
          .settings = settings_of(request, backend),
          .layer = text_of_layer(model),
          .threads = thread_count(),
          .hidden_size = model.hidden_size,
          .ffn_hidden_size = model.ffn_hidden_size(),
          .attention_heads = model.num_attention_heads,
          .vocabulary = model.padded_vocab_size(mesh.tensor->size()),
          .tensor_parallel = mesh.tensor->size(),
          .stages = mesh.pipeline->size(),
          .data_parallel = mesh.data->size(),
          .sequence_parallel = request.sequence_parallel ? 1 : 0,
          .sharded_optimizer = request.shard_optimizer ? 1 : 0,
          .sequences = request.sequences,
          .tokens = request.tokens,
          .logits_chunk = request.logits_chunk};
}

fs::path cached_profile(const slicing::ProfileKey& key) {
  const fs::path cache = user_cache_folder();
  if (cache.empty()) throw_user_error("neither HOME nor XDG_CACHE_HOME says where profiles are kept; name a file");
  return cache / "profiles" / (checksum_of(slicing::text_of(key)) + ".json");
}

void write_profile(const slicing::Profile& profile, const fs::path& file) {
  if (file.has_parent_path()) make_folders(file.parent_path());
  write_file_atomically(file, slicing::to_json(profile) + "\n");
}

slicing::Profile profile_for(const ProfileRequest& request, const std::shared_ptr<Mesh>& mesh, Backend& backend,
                             const fs::path& file, const ProfileProgress& progress) {
  const slicing::ProfileKey key = profile_key(request, *mesh, backend);
  const bool is_first = is_first_rank(*mesh);
  const bool has_cache = !user_cache_folder().empty();
  const fs::path path = file.empty() && has_cache ? cached_profile(key) : file;  // empty: it is kept nowhere
  const std::string stored = from_first_rank(*mesh, is_first ? stored_text(key, path, !file.empty()) : "");
  if (!stored.empty()) return slicing::profile_from_json(stored, path);
  const slicing::Profile profile = measure_profile(request, mesh, backend, progress);
  if (is_first && !file.empty()) write_profile(profile, file);
  if (is_first && file.empty()) keep_in_cache(profile, path);
  return profile;
}

}  // namespace teratron
