// RoBERTa's byte-level BPE: GPT-2's, with special tokens like BERT's, by which its vocabulary is recognised. Its files
// are read and written as transformers' RobertaTokenizer does: <s> and </s> frame a text, and white space before <mask>
// belongs to the mask, as in the published tokenizer.json ("lstrip").
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

// The ids of RoBERTa's special tokens; nullopt: the model is not RoBERTa's.
std::optional<RobertaTokens> roberta_tokens(const BpeModel& model);
// The post-processor of a tokenizer.json (RobertaProcessing), and the tokenizer_config.json beside it.
std::string roberta_post_processor_json(const BpeModel& model, const RobertaTokens& tokens);
std::string roberta_config_json(const BpeModel& model);

}  // namespace teratron
