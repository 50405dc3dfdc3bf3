// Every operation of Backend, each with a maker of random trials. Those of the list in ops/operations.h are declared
// from it: an operation without a trial does not link.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "ops/trials/trial.h"

namespace teratron::testing {

struct Operation {
  std::string name;
  Trial (*make)(Random& random);
  bool repeats_bitwise = true;
};

std::vector<Operation> operations();
// operations(), and those that GPUs do not have.
std::vector<Operation> host_operations();
// Attention as a library's kernels take it (no dropout, gradients that are overwritten), and what must stay ours.
std::vector<Operation> library_attention_operations();
// Linear layers for a back end that times the algorithms of each: few sizes, and small ones.
std::vector<Operation> timed_linear_operations();

inline void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

// Sizes at which kernels break: nothing, one, primes, around vector and tile sizes.
std::int64_t some_rows(Random& random);
std::int64_t some_features(Random& random);
Activation some_activation(Random& random);
// None, or a mask for a part of a larger batch of longer sequences that has room for these tokens and heads.
Dropout some_dropout(Random& random, std::int64_t tokens, std::int64_t heads = 0);
// In half of the trials moves the dropout's counters to an argument of the trial, and puts wrong values in `dropout`.
void move_counters(Trial& trial, Random& random, Dropout& dropout);
Dropout with_counters(Dropout dropout, const Views& views);  // for Trial::run

#define TERATRON_TRIAL(operation, Arguments) Trial operation##_trial(Random& random);
TERATRON_OPERATIONS(TERATRON_TRIAL)
#undef TERATRON_TRIAL
Trial timed_linear_forward_trial(Random& random);
Trial timed_linear_input_gradient_trial(Random& random);
Trial timed_linear_weight_gradient_trial(Random& random);
Trial tiled_embedding_forward_trial(Random& random);
Trial residual_add_in_place_trial(Random& random);
Trial padded_attention_forward_trial(Random& random);
Trial padded_attention_backward_trial(Random& random);
Trial document_embedding_forward_trial(Random& random);
Trial document_embedding_backward_trial(Random& random);
Trial document_attention_forward_trial(Random& random);
Trial document_attention_backward_trial(Random& random);
// Attention as tensor cores take it, both passes, of several tiles.
struct MatrixAttention {
  std::int64_t head_size = 64;
  bool causal = true, context = false, dropout = false;
  bool aligned = true;  // the dropout's mask, to its blocks of eight
};
Trial matrix_attention_trial(Random& random, const MatrixAttention& asked);
// Both passes, as the kernels for Hopper take them: anything, or as asked. Then gradients of causal attention are added
// to what is there, and with a context those of keys are sums in fp32.
Trial hopper_attention_trial(Random& random);
Trial hopper_attention_trial(Random& random, const MatrixAttention& asked);
// Forward alone or both, for planted faults: more tiles than shared memory holds, or padding that is NaN.
Trial hopper_tiles_trial(Random& random, bool backward);
Trial hopper_padding_trial(Random& random, bool backward);
Trial plain_attention_forward_trial(Random& random);
Trial plain_attention_backward_trial(Random& random);
Trial sum_of_squares_trial(Random& random);
Trial tally_trial(Random& random);
Trial split_floats_trial(Random& random);
Trial scale_add_trial(Random& random);
Trial copy_trial(Random& random);
Trial copy_converting_trial(Random& random);
Trial fill_trial(Random& random);
Trial fill_zero_trial(Random& random);
Trial fill_normal_trial(Random& random);
Trial add_trial(Random& random);

}  // namespace teratron::testing
