#include "settings/document_settings.h"

#include "base/error.h"

namespace teratron {
namespace {

constexpr Flag kResetAttentionMask{"reset-attention-mask"}, kResetPositionIds{"reset-position-ids"};
constexpr Flag kEodMaskLoss{"eod-mask-loss"};

std::int32_t end_token_of(const Tokenizer& tokenizer) {
  const std::optional<std::int32_t> end = tokenizer.end_of_text();
  if (end) return *end;
  throw_user_error(
      "where documents end is unknown: the tokenizer has no <|endoftext|>. Leave out --{}, --{} and --{}, or make the "
      "corpus with a tokenizer that has one",
      kResetAttentionMask.name, kResetPositionIds.name, kEodMaskLoss.name);
}

}  // namespace

Faults DocumentSettings::faults(const std::filesystem::path& tokenizer) const {
  Faults faults;
  if (!tokenizer.empty()) return faults;
  for (const auto& [flag, is_set] : {std::pair{kResetAttentionMask, reset_attention_mask},
                                     {kResetPositionIds, reset_position_ids},
                                     {kEodMaskLoss, eod_mask_loss}}) {
    faults.add_if(is_set, "{} needs {} DIR, the one the data was made with, to know where documents end", flag,
                  Flag{"tokenizer"});
  }
  return faults;
}

DocumentOptions DocumentSettings::options(const Tokenizer& tokenizer) const {
  DocumentOptions options{.reset_attention_mask = reset_attention_mask,
                          .reset_position_ids = reset_position_ids,
                          .eod_mask_loss = eod_mask_loss};
  if (options.any()) options.end_token = end_token_of(tokenizer);
  return options;
}

DocumentOptions DocumentSettings::options(const std::filesystem::path& tokenizer) const {
  const bool needs_tokenizer = reset_attention_mask || reset_position_ids || eod_mask_loss;
  return needs_tokenizer ? options(Tokenizer::load(tokenizer)) : DocumentOptions();
}

void add_document_fields(FieldList& list, DocumentSettings& settings) {
  list.add(std::string(kResetAttentionMask.name), &settings.reset_attention_mask, "",
           "documents in a sample, which end with <|endoftext|>, do not see one another");
  list.add(std::string(kResetPositionIds.name), &settings.reset_position_ids, "",
           "positions begin at 0 with every document in a sample");
  list.add(std::string(kEodMaskLoss.name), &settings.eod_mask_loss, "",
           "what follows <|endoftext|> is not predicted: the loss is the mean over the other targets");
}

}  // namespace teratron
