#include "plan/train_command.h"
#include "model/family.h"
#include "model/presets.h"

#include <fmt/ranges.h>

namespace teratron::plan {
namespace {

struct Words {
  std::vector<std::string> operator()(const std::int64_t* value) const { return {fmt::format("{}", *value)}; }
  std::vector<std::string> operator()(const double* value) const { return {fmt::format("{}", *value)}; }
  std::vector<std::string> operator()(const bool* value) const { return {*value ? "true" : "false"}; }
  std::vector<std::string> operator()(const std::string* value) const { return {*value}; }
  std::vector<std::string> operator()(const std::filesystem::path* value) const { return {value->string()}; }
  std::vector<std::string> operator()(const std::vector<std::filesystem::path>* value) const {
    return {value->begin(), value->end()};
  }
  template <class Number>
  std::vector<std::string> operator()(const std::vector<Number>* value) const {
    std::vector<std::string> words;
    for (const Number number : *value) words.push_back(fmt::format("{}", number));
    return words;
  }
  std::vector<std::string> operator()(const std::vector<std::string>* value) const { return *value; }
  std::vector<std::string> operator()(const Choice& choice) const { return {choice.names[choice.get()]}; }
};

std::vector<std::string> words_of(const Field& field) {
  return field.is_word() ? std::vector{field.word.first} : std::visit(Words{}, field.target);
}

void add_flag(const Field& field, std::vector<std::string>& words) {
  const std::vector<std::string> values = words_of(field);
  const std::string flag = "--" + (field.alias.empty() ? field.name : field.alias);
  if (field.is_bool()) {
    words.push_back(values.front() == "true" ? flag : flag + "=false");
  } else if (values.size() == 1) {
    // One word, since a value may begin as a flag does.
    if (values.front().starts_with('-') || values.front().empty()) return words.push_back(flag + "=" + values.front());
    words.insert(words.end(), {flag, values.front()});
  } else if (field.repeats) {
    for (const std::string& value : values) words.push_back(fmt::format("{}={}", flag, value));
  } else {
    words.push_back(flag);
    words.insert(words.end(), values.begin(), values.end());
  }
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

void choose_device_settings(TrainConfig& config, const Device& device, bool precision_is_given) {
  const bool is_faster_in_16 = device.peak_16 > device.peak_32;
  if (device.backend.empty() ? !is_faster_in_16 : device.backend != "cuda") return;
  config.backend.kind = BackendKind::kCuda;
  if (is_faster_in_16 && !precision_is_given)
    (is_refused_by_cuda_backend(device) ? config.backend.fp16 : config.backend.bf16) = true;
}

bool is_refused_by_cuda_backend(const Device& device) { return device.name.find("V100") != std::string::npos; }

std::int64_t vocabulary_size(const TrainConfig& config) {
  if (config.model.config.vocab_size > 0 || !config.model.tokenizer.empty()) return config.model.vocabulary_size();
  const std::int64_t of_preset = config.model.preset.empty() ? 0 : find_model_preset(config.model.preset).vocabulary;
  return of_preset > 0 ? of_preset : config.model.config.family().usual_vocabulary;
}

std::vector<std::string> train_words(const TrainConfig& config) {
  TrainConfig given = config, base;
  // Adapters stand beside weights of a folder, which a plan does not need.
  if (config.model.config.adapters.active() && config.output.finetune.empty()) given.output.finetune = "model";
  FieldList fields = fields_of(given), defaults = fields_of(base);
  const std::string by_default = base.model.preset;
  base.model.preset = config.model.preset;
  if (base.model.preset != by_default) defaults.find("model")->when_set();
  std::vector<std::string> words;
  for (const Field& field : fields) {
    const Field& as_set = *defaults.find(field.name);
    const bool is_preset = field.name == "model" && config.model.preset != by_default;
    const bool differs = words_of(field) != words_of(as_set);
    if (field.role == FieldRole::kConfigFile || !(is_preset || differs)) continue;
    add_flag(field, words);
    // The kind of model sets what belongs to it.
    if (field.name == "model-type") base.model.config.set_kind(config.model.config.kind);
  }
  return words;
}

std::string train_command(const TrainConfig& config, std::int64_t devices_of_host) {
  const std::int64_t ranks = config.layout.mesh().ranks();
  std::string text = devices_of_host > 0 && ranks > devices_of_host ? fmt::format("mpirun -n {} ", ranks) : "";
  text += "teratron train";
  for (const std::string& word : train_words(config)) text.append(" ").append(quoted(word));
  return text;
}

std::string train_command(const TrainConfig& config, const Cluster& cluster) {
  return train_command(config, cluster.links.size() > 1 ? cluster.links.front().devices : 0);
}

}  // namespace teratron::plan
