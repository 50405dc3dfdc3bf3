#include "data/text/end_tokens.h"

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/json_fields.h"

namespace teratron {

std::vector<std::int32_t> end_tokens_of(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path path = folder / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) continue;
    const nlohmann::json config = parse_json_object(read_file(path), path);
    const nlohmann::json ends = config.value("eos_token_id", nlohmann::json());
    std::vector<std::int32_t> ids;
    for (const nlohmann::json& id : ends.is_array() ? ends : nlohmann::json::array({ends})) {
      if (id.is_number_integer() && id >= 0 && id < tokenizer.vocab_size()) ids.push_back(id.get<std::int32_t>());
    }
    return ids;
  }
  return {};
}

}  // namespace teratron
