#include "checkpoint/hugging_face/sentence_transformer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Flags that the library wrote before version 5. Version 5 writes "pooling_mode": NAME instead.
constexpr std::pair<const char*, Pooling> kFlags[] = {{"pooling_mode_cls_token", Pooling::kCls},
                                                      {"pooling_mode_max_tokens", Pooling::kMax},
                                                      {"pooling_mode_mean_tokens", Pooling::kMean},
                                                      {"pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
                                                      {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
                                                      {"pooling_mode_lasttoken", Pooling::kLastToken}};

// The names of the poolings that config.json of a Pooling module asks for.
std::vector<std::string> pooling_names(const JsonFields& fields, const fs::path& file) {
  std::vector<std::string> names;
  if (fields.has("pooling_mode")) {
    const Json& mode = fields["pooling_mode"];
    const Json list = mode.is_array() ? mode : Json::array({mode});
    for (const Json& name : list) {
      if (!name.is_string()) throw_user_error("'{}': pooling_mode is not a name or a list of names", file.string());
      names.push_back(name.get<std::string>());
    }
  } else {
    // The library's defaults, for files that were written by hand.
    for (const auto& [flag, pooling] : kFlags) {
      if (flag_or(fields, flag, pooling == Pooling::kMean)) names.emplace_back(name_of(pooling));
    }
  }
  if (names.empty()) names.emplace_back("mean");
  return names;
}

// Reads the modules of a folder one after the other, and collects what we do not have.
class ModuleReader {
 public:
  explicit ModuleReader(const fs::path& folder) : folder_(folder) { read_.encoder = folder; }

  SentenceTransformer read() {
    const fs::path file = folder_ / "modules.json";
    const Json modules = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
    if (!modules.is_array()) throw_user_error("'{}' is no JSON list of modules", file.string());
    for (const Json& module : modules) {
      if (!module.is_object()) throw_user_error("'{}' lists what is no JSON object", file.string());
      add_module(JsonFields(module, file));
    }
    if (!has_pooling_) unsupported_.emplace_back("there is no Pooling module");
    read_prompt();
    if (unsupported_.empty()) return read_;
    throw_user_error(
        "'{}' describes a sentence-transformer that Teratron does not have: {}; its encoder alone is embedded from a "
        "folder without modules.json",
        file.string(), fmt::join(unsupported_, "; "));
  }

 private:
  // Their package has moved between versions, so the last part of a module's name decides its kind.
  void add_module(const JsonFields& module) {
    const std::string type = module.string("type");
    const std::string_view kind = std::string_view(type).substr(type.rfind('.') + 1);
    const fs::path path = module.has("path") ? fs::path(module.string("path")) : fs::path();
    if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
      module.throw_not("path", "a folder below");
    }
    const std::size_t index = modules_++;
    if (kind == "Transformer" && index == 0) {
      read_encoder(path.empty() ? folder_ : folder_ / path);
    } else if (kind == "Pooling" && index > 0 && !has_pooling_) {
      read_pooling(folder_ / path);
    } else if (kind == "Normalize" && has_pooling_) {
      read_normalize(folder_ / path);
    } else if (kind != "Dropout" || index == 0) {  // which is for training alone
      unsupported_.push_back(
          fmt::format("module {}, {} (there are Transformer, Pooling and Normalize, in this order)", index, type));
    }
  }

  void read_encoder(const fs::path& folder) {
    read_.encoder = folder;
    fs::path file;
    Json json;
    for (const char* kind : {"bert", "roberta", "distilbert"}) {  // older versions name it by the model
      file = folder / fmt::format("sentence_{}_config.json", kind);
      if (json = read_object(file); !json.empty()) break;
    }
    const JsonFields fields(json, file);
    if (fields.has("max_seq_length")) read_.max_tokens = fields.integer("max_seq_length", 2, kLargestSize);
    read_.lower_case = flag_or(fields, "do_lower_case", false);
    if (fields.has("transformer_task") && fields.string("transformer_task") != "feature-extraction") {
      unsupported_.push_back(fmt::format("transformer_task {}", fields.string("transformer_task")));
    }
    require_token_outputs(fields);
    for (const char* key :
         {"tokenizer_args", "processor_kwargs", "processing_kwargs", "config_args", "config_kwargs"}) {
      if (fields.has(key) && !fields.object(key).empty()) {
        unsupported_.push_back(fmt::format("{} {}", key, fields[key].dump()));
      }
    }
    if (read_.max_tokens == 0) read_.max_tokens = tokenizer_limit(folder / "tokenizer_config.json");
  }

  // Since version 6 a file says which of the encoder's outputs is read.
  void require_token_outputs(const JsonFields& fields) {
    const Json text =
        fields.has("modality_config") ? fields.object("modality_config").value("text", Json::object()) : Json::object();
    const Json output = text.is_object() ? text.value("method_output_name", Json()) : text;
    if (!output.is_null() && output != "last_hidden_state") {
      unsupported_.push_back(fmt::format("the encoder's output {} (there is last_hidden_state)", output.dump()));
    }
  }

  // The tokenizer's limit, used if the module has none; "very large" stands for none.
  static std::int64_t tokenizer_limit(const fs::path& file) {
    const Json json = read_object(file);
    const JsonFields fields(json, file);
    if (!fields.has("model_max_length")) return 0;
    const double limit = fields.number("model_max_length");
    return limit >= 2 && limit <= static_cast<double>(kLargestSize) ? static_cast<std::int64_t>(limit) : 0;
  }

  void read_pooling(const fs::path& folder) {
    has_pooling_ = true;
    const fs::path file = folder / "config.json";
    const Json json = parse_json_object(read_file(file), file);
    const JsonFields fields(json, file);
    include_prompt_ = flag_or(fields, "include_prompt", true);
    const std::vector<std::string> names = pooling_names(fields, file);
    if (names.size() > 1) {
      unsupported_.push_back(fmt::format("poolings side by side ({}; there is one at a time)", fmt::join(names, ", ")));
      return;
    }
    std::vector<std::string_view> all;
    for (const auto& [name, pooling] : kPoolingNames) {
      all.push_back(name);
      if (name != names.front()) continue;
      read_.pooling = pooling;
      return;
    }
    unsupported_.push_back(fmt::format("pooling '{}' (there are {})", names.front(), fmt::join(all, ", ")));
  }

  void read_normalize(const fs::path& folder) {
    read_.normalize = true;
    const fs::path file = folder / "config.json";
    const Json json = read_object(file);
    const JsonFields fields(json, file);
    for (const char* key : {"module_input_name", "module_output_name"}) {
      if (fields.has(key) && fields.string(key) != "sentence_embedding") {
        unsupported_.push_back(fmt::format("a Normalize module of {}", fields.string(key)));
      }
    }
  }

  void read_prompt() {
    const fs::path file = folder_ / "config_sentence_transformers.json";
    const Json json = read_object(file);
    const JsonFields fields(json, file);
    if (fields.has("truncate_dim")) unsupported_.push_back("truncate_dim " + fields["truncate_dim"].dump());
    if (!fields.has("default_prompt_name") || !fields.has("prompts")) return;
    const JsonFields prompts(fields.object("prompts"), file);
    const std::string name = fields.string("default_prompt_name");
    if (!prompts.has(name)) {
      throw_user_error("'{}': its default_prompt_name is '{}', and its prompts have none of that name", file.string(),
                       name);
    }
    read_.prompt = prompts.string(name);
    if (!read_.prompt.empty() && !include_prompt_) {
      unsupported_.push_back("a Pooling without the tokens of the prompt (include_prompt false)");
    }
  }

  // Contents of a file that may be absent.
  static Json read_object(const fs::path& file) {
    std::error_code error;
    return fs::exists(file, error) ? parse_json_object(read_file(file), file) : Json::object();
  }

  const fs::path& folder_;
  SentenceTransformer read_;
  bool has_pooling_ = false, include_prompt_ = true;
  std::size_t modules_ = 0;
  std::vector<std::string> unsupported_;
};

}  // namespace

std::optional<SentenceTransformer> learned_vectors(const fs::path& folder, const ModelConfig& model) {
  if (model.head != ModelHead::kVectors) return std::nullopt;
  return SentenceTransformer{.encoder = folder,
                             .pooling = model.vectors.pooling,
                             .normalize = true,  // losses are of cosines
                             .max_tokens = model.vectors.tokens};
}

FileContents sentence_transformer_files(const ModelConfig& model) {
  const std::optional<SentenceTransformer> learned = learned_vectors({}, model);
  if (!learned) return {};
  using Ordered = nlohmann::ordered_json;
  Ordered modules = Ordered::array();
  for (const auto& [kind, path] :
       {std::pair("Transformer", ""), std::pair("Pooling", "1_Pooling"), std::pair("Normalize", "2_Normalize")}) {
    modules.push_back({{"idx", modules.size()},
                       {"name", fmt::format("{}", modules.size())},
                       {"path", path},
                       {"type", fmt::format("sentence_transformers.models.{}", kind)}});
  }
  Ordered pooling = {{"word_embedding_dimension", model.hidden_size}};
  for (const auto& [flag, its] : kFlags) pooling[flag] = its == learned->pooling;
  const std::int64_t tokens = learned->max_tokens > 0 ? learned->max_tokens : model.max_position_embeddings;
  const Ordered encoder = {{"max_seq_length", tokens}, {"do_lower_case", false}};
  const auto text = [](const Ordered& json) { return json.dump(2) + "\n"; };
  return {{"modules.json", text(modules)}, {"sentence_bert_config.json", text(encoder)}, {kPoolingFile, text(pooling)}};
}

std::optional<SentenceTransformer> read_sentence_transformer(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / "modules.json", error)) return std::nullopt;
  return ModuleReader(folder).read();
}

}  // namespace teratron
