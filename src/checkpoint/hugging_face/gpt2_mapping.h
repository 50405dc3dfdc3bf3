// The names of a GPT-2's tensors in Hugging Face's files.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// "transformer.h.3.attn.c_attn.weight" of "layers.3.attention.qkv.weight". InternalError: not a GPT-2's parameter.
std::string gpt2_tensor_name(std::string_view parameter);

// Hugging Face's GPT-2 has Conv1D where we have linear layers: its matrices are [inputs, outputs].
bool is_gpt2_tensor_transposed(std::string_view parameter);

}  // namespace teratron
