// Every operation: its arguments, a struct each (those of linear layers in linear_operations.h), and one list at the
// end of this file. The list makes the members of Backend (ops/backend.h) and of all back ends, the names that
// observers get, and the trials of the tests.
//
// Conventions: views are contiguous unless said otherwise. "rows" means the product of all axes but the last.
// Activation gradients overwrite their output, parameter gradients overwrite or, with `accumulate`, add. An output
// shares no memory with another view of its call unless stated. Row counts (T, B, S) may be 0; feature sizes (I, O, H,
// D, V, hidden) are at least 1. A violation is an InternalError that names the operation and the view. Legend: T rows
// (batch x tokens), I inputs, O outputs, B batch, S tokens, H heads, D head size, V vocabulary columns held here.
//
// Precision: a back end computes with one of f64, f32, bf16 and f16, its compute type C. It also has an accumulation
// type A: f64 for f64, else f32. Views are of C unless marked A: weights, activations, their gradients and logits are
// C; statistics, losses, parameter gradients and optimizer state (but for AdamW's bf16 moments) are A. The 16-bit types
// only store: arithmetic and sums are in A (the reference uses f64 for all), and what is stored is rounded once, to
// nearest even; beyond f16's 65504 that is infinity. Where an operation reads its own output again, it reads the stored
// value and its comment says so; other intermediates are not rounded to C. Two back ends may therefore differ by the
// rounding of their sums in A and then, where that moved a value across a boundary of C's rounding, by one unit in C's
// last place.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "ops/linear_operations.h"
#include "tensor/tensor.h"

namespace teratron {

// y = activation(x), element by element; not kNone. y may be x.
struct ActivationForward {
  TensorRef y, x;  // [.., I]
  Activation activation = Activation::kGeluErf;
};

// dx = dy * activation'(x). dx may be dy.
struct ActivationBackward {
  TensorRef dx, dy, x;  // [.., I]
  Activation activation = Activation::kGeluErf;
};

// Inverted dropout whose mask depends only on the global element: element e of the whole (unsplit) tensor is kept iff
// the 16-bit lane e % 8 (low half of word 0 first) of random.bits(e / 8) is at least threshold(); kept values are
// multiplied by scale(). Activations [batch, tokens, hidden]: e = ((first_sample + b) * sequence_length +
// first_position + t) * hidden + j. Attention probabilities: e = (((first_sample + b) * heads + first_head + h) *
// sequence_length + query) * key_stride() + key, with query and key global positions.
struct Dropout {
  double probability = 0;  // 0: no dropout, nothing is drawn
  RandomStream random;
  std::int64_t first_sample = 0, sequence_length = 0, first_position = 0;
  std::int64_t first_head = 0, heads = 0;  // attention only
  // i32 [2], optional: random.step and first_sample are read from there, so that a captured call (Backend::replay)
  // draws another mask in each iteration and for each micro-batch.
  TensorRef counters;

  bool active() const { return probability > 0; }
  std::uint32_t threshold() const;
  float scale() const;
  std::int64_t key_stride() const { return (sequence_length + 7) / 8 * 8; }
};

// Norms over the last axis. Layer norm (Ba, Kiros and Hinton, arXiv 1607.06450): y = (x - mean) * rstd * gamma + beta.
// RMS norm (Zhang and Sennrich, arXiv 1910.07467), which has neither mean nor beta: y = x * rstd * gamma, with rstd =
// 1 / sqrt(mean of x^2 + epsilon). norm_forward() writes mean and rstd; norm_apply() reads them and computes y again.
struct NormForward {
  TensorRef y;     // [.., hidden]
  TensorRef mean;  // A [rows]; null: RMS norm
  TensorRef rstd;  // A [rows]
  TensorRef x, gamma;
  TensorRef beta;  // with mean
  double epsilon = 1e-5;

  bool is_rms() const { return !mean; }
};

struct NormBackward {
  TensorRef dx;
  TensorRef dgamma;  // A, optional
  TensorRef dbeta;   // A; with mean and dgamma
  TensorRef dy, x;
  TensorRef mean;  // A; null: RMS norm
  TensorRef rstd;  // A
  TensorRef gamma;
  bool accumulate_dx = false;  // dx += : the residual stream's gradient is already there
  bool accumulate = false;     // for dgamma and dbeta

  bool is_rms() const { return !mean; }
};

// sum = residual + dropout(branch). sum may be residual.
struct ResidualAdd {
  TensorRef sum, residual, branch;  // [batch, tokens, hidden]
  Dropout dropout;
};

// A residual add, then the norm of its sum, in one pass over memory.
struct ResidualAddNorm {
  ResidualAdd add;
  NormForward norm;  // x is add.sum
};

// dbranch = dropout(dsum): the gradient of ResidualAdd's branch. dbranch may be dsum.
struct DropoutBackward {
  TensorRef dbranch, dsum;  // [batch, tokens, hidden]
  Dropout dropout;
};

// The gradients of ResidualAddNorm in one pass over memory. The branch's is computed from norm.dx as stored.
struct ResidualAddNormBackward {
  NormBackward norm;
  DropoutBackward add;  // dsum is norm.dx
};

// Scaled dot-product attention of S_q queries on S_k keys (S_k >= S_q: the queries are the last S_q positions). All
// views may be strided with unit stride along D, so that q, k and v can be parts of one packed projection or of a
// key/value cache. Causal: query i sees keys 0 .. S_k - S_q + i. log_sum_exp is kept for the backward pass. A back end
// may round the probabilities p (with dropout, or before they are divided by their sum) to C before it multiplies v.
//
// Query heads may share keys and values (Ainslie et al., arXiv 2305.13245): with G key heads, G a divisor of H, query
// head h reads key head h / (H / G).
//
// Sequences of different lengths lie in one batch with padding after their text. Positions count over the whole
// sequence: key j is position j, query i is position S_k - S_q + i, and sequence b has text at its first lengths[b]
// positions, 0 <= lengths[b] <= S_k. No query sees a padded key. Padded queries are not computed: their rows of out and
// log_sum_exp become 0. Padded rows of q, k and v are not used, whatever they hold. Padding takes next to no time.
//
// Documents that share a sequence do not see one another (causal only): query i of sequence b sees keys from
// first_keys[b][i] on, which never falls with i; 0 <= first_keys[b][i] <= S_k - S_q + i. Tiles of keys that no query of
// a block sees are not computed, so many documents take less time than one of their length.
struct AttentionForward {
  TensorRef out;          // [B, S_q, H, D]
  TensorRef log_sum_exp;  // A [B, H, S_q], natural logarithm of the scaled scores' sum of exponentials
  TensorRef q, k, v;      // [B, S_q, H, D], [B, S_k, G, D], [B, S_k, G, D]
  TensorRef lengths;      // i32 [B], optional: without it there is no padding
  TensorRef first_keys;   // i32 [B, S_q], optional: without it every query sees from key 0 on
  bool causal = true;
  double scale = 0;  // usually 1 / sqrt(D)
  Dropout dropout;   // first_position is the first query's; keys count from position first_position - (S_k - S_q)

  std::int64_t key_heads() const { return k.dim(2); }
  std::int64_t heads_per_key_head() const { return q.dim(2) / k.dim(2); }
};

// dk and dv cover all S_k keys; with accumulate_kv they are added to (token slices, TeraPipe section 3). Where query
// heads share a key head, its gradients are the sums over them, in their order, in A. Both are of C or both of A, so
// that the sums over many slices need not be rounded to C in between. A back end may take the sum over keys of p * dp
// as dout . out, with `out` as stored, and may round p and ds to C before it multiplies with them. With
// forward.lengths, dq of padded queries becomes 0 and their rows of dout are not used; dk and dv of padded keys become
// 0 or, with accumulate_kv, keep their values.
struct AttentionBackward {
  TensorRef dq, dk, dv;  // strided like q, k, v
  TensorRef dout;        // [B, S_q, H, D]
  AttentionForward forward;
  bool accumulate_kv = false;
};

// Attention of the next tokens of key/value caches, one for each sequence. Their lengths are read from memory, so that
// a captured call (Backend::replay) stays right while the caches grow. With n = lengths[b]: rows n .. n + T - 1 of both
// caches of sequence b become its k and v, then query t sees cached rows 0 .. n + t. There must be room: 0 <= n,
// n + T <= S. With a window, query t sees the last `window` of these rows alone. A sequence's result does not depend on
// the others. Strides, rounding and shared key heads are as in AttentionForward.
struct CachedAttention {
  TensorRef out, q;         // [B, T, H, D]
  TensorRef k, v;           // [B, T, G, D]
  TensorRef keys, values;   // the caches, [B, S, G, D]
  TensorRef lengths;        // i32 [B]
  double scale = 0;         // usually 1 / sqrt(D)
  std::int64_t window = 0;  // keys that a query sees at most; 0: all
};

// Elements of a head that are rotary pair r of R: r and r + R (GPT-NeoX, Llama), or 2 r and 2 r + 1 (the paper, and
// GPT-J).
enum class RotaryPairs { kHalves, kNeighbours };

// Rotary positions (Su et al., arXiv 2104.09864), in place. The first 2 R elements of every head are R pairs; a token
// at position p turns pair r, (a, b), into (a cos - b sin, a sin + b cos) with the cosine table[p][0][r] and the sine
// table[p][1][r]. Token (b, t) is at first_position + t or, with position_ids, at position_ids[b, t], in [0,
// positions). `inverse` turns back, which is the gradient.
struct Rotary {
  TensorRef x;      // [B, S, H, D], strided as in AttentionForward, 2 R <= D
  TensorRef table;  // A [positions, 2, R]
  std::int64_t first_position = 0;
  TensorRef position_ids;  // i32 [B, S], optional
  RotaryPairs pairs = RotaryPairs::kHalves;
  bool inverse = false;
};

// y[b,t,:] = dropout(tokens[ids[b,t]] + positions[first_position + t]). An id outside [vocab_begin, vocab_begin + V)
// takes zero for the first term, since the vocabulary may be split over ranks, whose results are added up. Without
// `positions` the second term is zero: only one of the ranks adds it. With position_ids it is
// positions[position_ids[b,t]]; each is in [0, max positions).
struct EmbeddingForward {
  TensorRef y;          // [batch, tokens, hidden]
  TensorRef ids;        // i32 [batch, tokens]
  TensorRef tokens;     // [V, hidden]; on CPUs also tiles of it [ceil(V / 16), hidden / 32] (tensor/weight_tiles.h)
  TensorRef positions;  // [max positions, hidden], optional
  std::int64_t first_position = 0, vocab_begin = 0;
  TensorRef position_ids;  // i32 [batch, tokens], optional
  Dropout dropout;
};

// dtokens and dpositions are added to where accumulate is set, else overwritten as a whole (rows never seen get 0).
// Either may be left out.
struct EmbeddingBackward {
  TensorRef dtokens, dpositions;  // A
  TensorRef dy, ids;
  std::int64_t first_position = 0, vocab_begin = 0;
  TensorRef position_ids;  // as in forward
  Dropout dropout;
  bool accumulate_tokens = false, accumulate_positions = false;
};

// Softmax statistics of the columns held here, for a cross-entropy that never gathers the logits (Megatron section 3).
// Columns at or beyond valid_columns (counted from the first one held here) are padding: left out of the softmax, their
// gradient is zero. In a row of padding alone, max is -infinity and sum 0. With `lengths`, the rows are those of B
// sequences, T / B each, and columns at or beyond a sequence's length are padding of its rows, too.
struct CrossEntropyPartials {
  // A [T]: row maximum, sum of exp(logit - max), logit of the target (0 if not here)
  TensorRef max, sum, target_logit;
  TensorRef logits;   // [T, V]
  TensorRef targets;  // i32 [T], global ids
  TensorRef lengths;  // i32 [B], optional; T is a multiple of B
  std::int64_t vocab_begin = 0, valid_columns = 0;
};

// sum *= exp(own_max - max): partial sums of several ranks are brought to the same maximum, so that they add up. Where
// own_max is -infinity, sum stays 0.
struct CrossEntropyRescale {
  TensorRef sum, own_max, max;  // A [T]
};

// loss = log(sum) + max - target_logit
struct CrossEntropyLoss {
  TensorRef loss, max, sum, target_logit;  // A [T]
};

// total += sum over T of value * weight, in f64: the losses of a step stay in the back end's memory until its end. With
// count_below, total += the sum of the weights of the values that are less than it.
struct WeightedSum {
  TensorRef total;          // f64 [1]
  TensorRef value, weight;  // A [T]
  std::optional<double> count_below = {};
};

// In place: logits[T,V] becomes weight[t] * (softmax - onehot(target)), with the global max and sum.
struct CrossEntropyBackward {
  TensorRef logits;
  TensorRef max, sum;  // A [T]
  TensorRef targets;   // i32 [T]
  TensorRef weight;    // A [T]: loss mask times the scale of the loss
  TensorRef lengths;   // as in CrossEntropyPartials
  std::int64_t vocab_begin = 0, valid_columns = 0;
};

// Indices, in the whole tensor, of the elements of a flat part. The part is made of runs of `run` elements; run r lies
// at r * whole_run + offset in the whole. Element 0 of the part is element `first` of the runs.
struct ElementIndices {
  std::int64_t first = 0, run = std::numeric_limits<std::int64_t>::max(), whole_run = 0, offset = 0;

  constexpr std::int64_t of(std::int64_t element) const {
    return (first + element) / run * whole_run + offset + (first + element) % run;
  }
  constexpr std::int64_t left_in_run(std::int64_t element) const { return run - (first + element) % run; }
};

// One AdamW update (Loshchilov and Hutter) of several parameters: decoupled decay, bias correction by the powers given.
// In mixed precision the layers read `working`, and only AdamW reads `value`: with C = fp16 it is the master, with C =
// bf16 the remainder that makes `working` the master again (split_float).
struct AdamWParameter {
  TensorRef value;             // A, or remainders: u16
  TensorRef gradient;          // A
  TensorRef moment1, moment2;  // A, or in all parameters bf16, rounded stochastically (bf16_by_chance)
  TensorRef working;           // C; all parameters have one, or none has
  double weight_decay = 0;
  // Rounding of bf16 moments: element e of the whole tensor takes word e % 4 of block e / 4 of this stream, its lower
  // half for moment1 and its upper half for moment2.
  RandomStream rounding = {};
  ElementIndices indices = {};
};
struct AdamW {
  std::vector<AdamWParameter> parameters;
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double correction1 = 1, correction2 = 1;  // 1 - beta^step
  double gradient_scale = 1;                // the clip coefficient, and 1 / loss scale
};

// X(operation, arguments): Backend::operation(const arguments&) checks them and calls do_operation(const arguments&).
#define TERATRON_OPERATIONS(X)                               \
  X(linear_forward, LinearForward)                           \
  X(tile_linear_forward, TileLinearForward)                  \
  X(frozen_linear_forward, FrozenLinearForward)              \
  X(linear_input_gradient, LinearInputGradient)              \
  X(frozen_linear_input_gradient, FrozenLinearInputGradient) \
  X(linear_weight_gradient, LinearWeightGradient)            \
  X(activation_forward, ActivationForward)                   \
  X(activation_backward, ActivationBackward)                 \
  X(norm_forward, NormForward)                               \
  X(norm_apply, NormForward)                                 \
  X(norm_backward, NormBackward)                             \
  X(residual_add, ResidualAdd)                               \
  X(residual_add_norm, ResidualAddNorm)                      \
  X(dropout_backward, DropoutBackward)                       \
  X(residual_add_norm_backward, ResidualAddNormBackward)     \
  X(attention_forward, AttentionForward)                     \
  X(attention_backward, AttentionBackward)                   \
  X(cached_attention, CachedAttention)                       \
  X(rotary, Rotary)                                          \
  X(embedding_forward, EmbeddingForward)                     \
  X(embedding_backward, EmbeddingBackward)                   \
  X(cross_entropy_partials, CrossEntropyPartials)            \
  X(cross_entropy_rescale, CrossEntropyRescale)              \
  X(cross_entropy_loss, CrossEntropyLoss)                    \
  X(cross_entropy_backward, CrossEntropyBackward)            \
  X(weighted_sum, WeightedSum)                               \
  X(adamw, AdamW)

// Summary of tensors in the back end's memory (Backend::tally). Equal bits in equal calls give equal tallies; a bit
// that differs gives other `bits`.
struct Tally {
  double squares = 0;      // the sum of the squares; infinite or NaN if a value is, or if squares of fp32 overflow
  float largest = 0;       // the largest magnitude; NaN if a value is
  std::uint32_t bits = 0;  // the sum of the bit patterns as 32-bit words, modulo 2^32
  bool operator==(const Tally&) const = default;
};

// X(result, operation, parameters...): operations on memory, which have no struct and take views of any floating dtype.
// Backend declares and checks their public members one by one. do_fill() also serves fill_zero().
#define TERATRON_MEMORY_OPERATIONS(X)                                                             \
  X(void, upload, const TensorRef&, const void*)                                                  \
  X(void, download, void*, const TensorRef&)                                                      \
  X(void, copy, const TensorRef&, const TensorRef&)                                               \
  X(void, fill, const TensorRef&, double)                                                         \
  X(void, fill_normal, const TensorRef&, const RandomStream&, std::int64_t, double, std::int64_t) \
  X(void, add, const TensorRef&, const TensorRef&)                                                \
  X(void, scale_add, const TensorRef&, double, const TensorRef&, double)                          \
  X(void, split_floats, const TensorRef&, const TensorRef&, const TensorRef&)                     \
  X(void, join_floats, const TensorRef&, const TensorRef&, const TensorRef&)                      \
  X(double, sum_of_squares, std::span<const TensorRef>)                                           \
  X(void, tally, const TensorRef&, const TensorRef&)

}  // namespace teratron
