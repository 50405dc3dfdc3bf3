#include "tokenizer/bpe/roberta.h"

#include <fmt/format.h>

#include <algorithm>

namespace teratron {

std::optional<RobertaTokens> roberta_tokens(const BpeModel& model) {
  const auto id_of = [&](std::string_view text) { return model.special_id(text).value_or(-1); };
  const RobertaTokens tokens{
      .begin = id_of("<s>"), .pad = id_of("<pad>"), .end = id_of("</s>"), .mask = id_of(kRobertaMask)};
  if (!model.is_as_gpt2() || std::min({tokens.begin, tokens.pad, tokens.end, tokens.mask}) < 0) return std::nullopt;
  return tokens;
}

std::string roberta_post_processor_json(const BpeModel& model, const RobertaTokens& tokens) {
  return fmt::format(R"({{"type": "RobertaProcessing", "sep": ["</s>", {}], "cls": ["<s>", {}], "trim_offsets": true, )"
                     R"("add_prefix_space": {}}})",
                     tokens.end, tokens.begin, model.pipeline.prefix != BpePrefix::kNever);
}

std::string roberta_config_json(const BpeModel& model) {
  return fmt::format(R"({{"tokenizer_class": "RobertaTokenizer", "add_prefix_space": {}, "bos_token": "<s>", )"
                     R"("cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>", )"
                     R"("pad_token": "<pad>", "mask_token": "<mask>", "trim_offsets": true}})"
                     "\n",
                     model.pipeline.prefix != BpePrefix::kNever);
}

}  // namespace teratron
