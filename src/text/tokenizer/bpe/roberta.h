// RoBERTa's byte-level BPE: GPT-2's, with BERT-like special tokens. Its vocabulary says that it is one, so its files
// are read and written as transformers' RobertaTokenizer has them: texts are framed by <s> and </s>, and white space
// before <mask> belongs to that, as in the published tokenizer.json ("lstrip").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/bpe/bpe_model.h"

namespace teratron {

inline constexpr std::string_view kRobertaMask = "<mask>";

struct RobertaTokens {
  std::int32_t begin = 0, pad = 0, end = 0, mask = 0;  // <s>, <pad>, </s>, <mask>
};

// nullopt: the model is another one.
std::optional<RobertaTokens> roberta_tokens(const BpeModel& model);
// RobertaProcessing of a tokenizer.json, and the tokenizer_config.json beside it.
std::string roberta_post_processor_json(const BpeModel& model, const RobertaTokens& tokens);
std::string roberta_config_json(const BpeModel& model);

}  // namespace teratron
