#include "ops/trials/operations.h"

namespace teratron::testing {

std::vector<Operation> operations() {
#define TERATRON_TRIAL(operation, Arguments) {#operation, operation##_trial},
  std::vector<Operation> all = {
      TERATRON_OPERATIONS(TERATRON_TRIAL)
      // Trials with other arguments.
      {"residual_add_in_place", residual_add_in_place_trial},
      {"padded_attention_forward", padded_attention_forward_trial},
      {"padded_attention_backward", padded_attention_backward_trial},
      {"document_attention_forward", document_attention_forward_trial},
      {"document_attention_backward", document_attention_backward_trial},
      {"document_embedding_forward", document_embedding_forward_trial},
      {"document_embedding_backward", document_embedding_backward_trial},
      // On memory.
      {"sum_of_squares", sum_of_squares_trial},
      {"tally", tally_trial},
      {"split_floats", split_floats_trial},
      {"copy", copy_trial},
      {"copy_converting", copy_converting_trial},
      {"fill", fill_trial},
      {"fill_zero", fill_zero_trial},
      {"fill_normal", fill_normal_trial},
      {"add", add_trial},
  };
#undef TERATRON_TRIAL
  std::erase_if(all, [](const Operation& operation) {
    return operation.name == "tile_linear_forward" || operation.name.starts_with("frozen_linear");
  });
  return all;
}

std::vector<Operation> host_operations() {
  std::vector<Operation> all = operations();
  all.push_back({"tile_linear_forward", tile_linear_forward_trial});
  all.push_back({"frozen_linear_forward", frozen_linear_forward_trial});
  all.push_back({"frozen_linear_input_gradient", frozen_linear_input_gradient_trial});
  all.push_back({"tiled_embedding_forward", tiled_embedding_forward_trial});
  all.push_back({"scale_add", scale_add_trial});
  return all;
}

std::vector<Operation> library_attention_operations() {
  return {
      {"plain_attention_forward", plain_attention_forward_trial},
      {"plain_attention_backward", plain_attention_backward_trial, false},
      {"padded_attention_forward", padded_attention_forward_trial},
      {"padded_attention_backward", padded_attention_backward_trial},
      {"document_attention_forward", document_attention_forward_trial},
      {"document_attention_backward", document_attention_backward_trial},
  };
}

std::vector<Operation> timed_linear_operations() {
  return {
      {"timed_linear_forward", timed_linear_forward_trial},
      {"timed_linear_input_gradient", timed_linear_input_gradient_trial},
      {"timed_linear_weight_gradient", timed_linear_weight_gradient_trial},
  };
}

std::int64_t some_rows(Random& random) { return random.one_of<std::int64_t>({0, 1, 2, 3, 7, 13, 31, 64, 65, 130}); }

std::int64_t some_features(Random& random) {
  return random.one_of<std::int64_t>({1, 2, 3, 5, 8, 17, 33, 64, 80, 96, 127, 128, 257, 384});
}

Activation some_activation(Random& random) {
  return random.one_of({Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu});
}

Dropout some_dropout(Random& random, std::int64_t tokens, std::int64_t heads) {
  Dropout dropout;
  dropout.probability = random.one_of({0.0, 0.1, 0.5});
  dropout.random = {.seed = static_cast<std::uint64_t>(random.below(1 << 30)) << 8,
                    .purpose = RandomPurpose::kResidualDropout,
                    .stream = static_cast<std::uint32_t>(random.below(100)),
                    .step = static_cast<std::uint32_t>(random.below(1000))};
  dropout.first_sample = random.below(4);
  dropout.first_position = random.below(20);
  dropout.sequence_length = dropout.first_position + tokens + random.below(20);
  dropout.first_head = random.below(3);
  dropout.heads = dropout.first_head + heads + random.below(3);
  return dropout;
}

void move_counters(Trial& trial, Random& random, Dropout& dropout) {
  if (random.coin()) return;
  const auto step = static_cast<double>(dropout.random.step), sample = static_cast<double>(dropout.first_sample);
  trial.ids("counters", {2}, {step, sample});
  dropout.random.step += 1;
  dropout.first_sample += 1;
}

Dropout with_counters(Dropout dropout, const Views& views) {
  dropout.counters = views["counters"];
  return dropout;
}

}  // namespace teratron::testing
