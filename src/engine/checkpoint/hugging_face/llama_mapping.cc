// The names of a Llama's tensors, which Mistral's, Qwen 2's and Qwen 3's share.
#include "checkpoint/hugging_face/mapping.h"

namespace teratron {

const HuggingFaceMapping& llama_mapping() {
  static const HuggingFaceMapping mapping{
      .prefix = "model.",
      .heads = {"lm_head."},
      .layers = "model.layers.",
      .of_model = {{"embedding.tokens", {"model.embed_tokens"}},
                   {"final_norm", {"model.norm"}},
                   {"output", {"lm_head"}}},
      .of_layer = {{"norm1", {"input_layernorm"}},
                   {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
                   {"attention.query", {"self_attn.q_proj"}},
                   {"attention.key_value", {"self_attn.k_proj", "self_attn.v_proj"}},
                   {"attention.query_norm", {"self_attn.q_norm"}},
                   {"attention.key_norm", {"self_attn.k_norm"}},
                   {"attention.projection", {"self_attn.o_proj"}},
                   {"norm2", {"post_attention_layernorm"}},
                   {"mlp.gate", {"mlp.gate_proj"}},
                   {"mlp.up", {"mlp.up_proj"}},
                   {"mlp.down", {"mlp.down_proj"}}},
      .copies = {{"lm_head.weight", "model.embed_tokens.weight"}},
      .current_name = [](std::string_view stored) -> std::optional<std::string> {
        if (stored.ends_with("rotary_emb.inv_freq")) return std::nullopt;  // follows from the configuration
        return std::string(stored);
      }};
  return mapping;
}

}  // namespace teratron
