// A small model of a later family, for tests that were written for GPT-2.
#pragma once

#include "model/config.h"

namespace teratron::testing {

// A Llama of these sizes: all heads share one of keys where they are odd, else two; a window shorter than the
// sequences.
inline void become_llama(ModelConfig& config) {
  config.set_kind(ModelKind::kLlama);
  config.num_key_value_heads = config.num_attention_heads % 2 == 0 ? 2 : 1;
  config.head_dim = 6;
  config.intermediate_size = 5 * config.num_attention_heads;
  config.window = 5;
}

}  // namespace teratron::testing
