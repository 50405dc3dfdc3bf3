// Tokens at which texts of a model end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace teratron {

// Tokens that end a text of the model in `folder`, beside the tokenizer's end of one, as transformers' generate() has
// them: eos_token_id of generation_config.json, or without that file of Hugging Face's config.json. Ids that the
// tokenizer does not have are left out. UserError: the file is damaged.
std::vector<std::int32_t> end_tokens_of(const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace teratron
