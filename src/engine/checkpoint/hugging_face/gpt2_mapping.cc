// The names of a GPT-2's tensors. Hugging Face's GPT-2 has Conv1D where we have linear layers: its matrices are
// [inputs, outputs].
#include "checkpoint/hugging_face/mapping.h"

namespace teratron {
namespace {

// The causal mask and its fill value, which some versions stored as if they were weights.
bool is_mask(std::string_view name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

}  // namespace

const HuggingFaceMapping& gpt2_mapping() {
  static const HuggingFaceMapping mapping{.prefix = "transformer.",
                                          .heads = {"lm_head."},
                                          .layers = "transformer.h.",
                                          .of_model = {{"embedding.tokens", {"transformer.wte"}},
                                                       {"embedding.positions", {"transformer.wpe"}},
                                                       {"final_norm", {"transformer.ln_f"}}},
                                          .of_layer = {{"norm1", {"ln_1"}},
                                                       {"attention.qkv", {"attn.c_attn"}, true},
                                                       {"attention.projection", {"attn.c_proj"}, true},
                                                       {"norm2", {"ln_2"}},
                                                       {"mlp.up", {"mlp.c_fc"}, true},
                                                       {"mlp.down", {"mlp.c_proj"}, true}},
                                          .copies = {{"lm_head.weight", "transformer.wte.weight"}},
                                          .current_name = [](std::string_view stored) -> std::optional<std::string> {
                                            if (is_mask(stored)) return std::nullopt;
                                            return std::string(stored);
                                          }};
  return mapping;
}

}  // namespace teratron
