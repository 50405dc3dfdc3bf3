// Checks of the operations that know which tokens are a sequence: attention, rotary positions and embeddings.
#include "ops/argument_checks.h"
#include "ops/operations.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

// Checks that each key head is read by equally many query heads.
void check_heads(const ArgumentChecks& checks, std::int64_t heads, std::int64_t key_heads) {
  checks.require(heads > 0, "there is at least one head");
  checks.require(key_heads > 0 && heads % key_heads == 0, "the heads are a multiple of the key heads");
}

// Checks the positions [batch, tokens] of a call that looks them up. Ids in device memory are not read.
template <class Arguments>
void check_positions(const ArgumentChecks& checks, const Arguments& args, const TensorRef& table, std::int64_t batch,
                     std::int64_t tokens) {
  if (args.position_ids) return checks.tensor("position_ids", args.position_ids, {batch, tokens}, DType::kI32);
  checks.require(args.first_position >= 0 && args.first_position + tokens <= table.dim(0),
                 "the table has every token's position");
}

}  // namespace

bool check_arguments(AttentionForward& args, const ArgumentChecks& checks) {
  checks.rank("q", args.q, 4);
  checks.rank("k", args.k, 4);
  const std::int64_t batch = args.q.dim(0), heads = args.q.dim(2), head_size = checks.columns("q", args.q);
  const std::int64_t queries = args.q.dim(1), keys = args.k.dim(1), key_heads = args.k.dim(2);
  check_heads(checks, heads, key_heads);
  checks.require(keys >= queries, "the queries are the last of the keys' positions");
  checks.strided("out", args.out, {batch, queries, heads, head_size});
  checks.tensor("log_sum_exp", args.log_sum_exp, {batch, heads, queries}, checks.accumulation());
  checks.strided("q", args.q, {batch, queries, heads, head_size});
  checks.strided("k", args.k, {batch, keys, key_heads, head_size});
  checks.strided("v", args.v, {batch, keys, key_heads, head_size});
  if (args.lengths) checks.tensor("lengths", args.lengths, {batch}, DType::kI32);
  if (args.first_keys) {
    checks.tensor("first_keys", args.first_keys, {batch, queries}, DType::kI32);
    checks.require(args.causal, "documents that share a sequence are causal");
  }
  checks.require(args.scale > 0, "the scale of the scores is given");
  checks.attention_dropout(args.dropout, queries, keys, heads);
  checks.separate(
      {{"out", args.out}, {"log_sum_exp", args.log_sum_exp}},
      {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"lengths", args.lengths}, {"first_keys", args.first_keys}});
  return args.out.elements() > 0;
}

bool check_arguments(CachedAttention& args, const ArgumentChecks& checks) {
  checks.rank("q", args.q, 4);
  checks.rank("keys", args.keys, 4);
  const std::int64_t batch = args.q.dim(0), heads = args.q.dim(2), head_size = checks.columns("q", args.q);
  const std::int64_t tokens = args.q.dim(1), room = args.keys.dim(1), key_heads = args.keys.dim(2);
  check_heads(checks, heads, key_heads);
  checks.require(room >= tokens, "the cache has room for the tokens");
  checks.require(args.window >= 0, "the window is not negative");
  checks.strided("out", args.out, {batch, tokens, heads, head_size});
  checks.strided("q", args.q, {batch, tokens, heads, head_size});
  checks.strided("k", args.k, {batch, tokens, key_heads, head_size});
  checks.strided("v", args.v, {batch, tokens, key_heads, head_size});
  checks.strided("keys", args.keys, {batch, room, key_heads, head_size});
  checks.strided("values", args.values, {batch, room, key_heads, head_size});
  checks.tensor("lengths", args.lengths, {batch}, DType::kI32);
  checks.require(args.scale > 0, "the scale of the scores is given");
  checks.separate({{"out", args.out}, {"keys", args.keys}, {"values", args.values}},
                  {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"lengths", args.lengths}});
  return args.out.elements() > 0;
}

bool check_arguments(AttentionBackward& args, const ArgumentChecks& checks) {
  check_arguments(args.forward, checks);
  const AttentionForward& forward = args.forward;
  checks.strided("dq", args.dq, forward.q.shape);
  const DType kv_dtype = args.dk.dtype == checks.accumulation() ? checks.accumulation() : checks.compute();
  checks.strided("dk", args.dk, forward.k.shape, kv_dtype);
  checks.strided("dv", args.dv, forward.v.shape, kv_dtype);
  checks.strided("dout", args.dout, forward.out.shape);
  checks.separate({{"dq", args.dq}, {"dk", args.dk}, {"dv", args.dv}}, {{"dout", args.dout},
                                                                        {"q", forward.q},
                                                                        {"k", forward.k},
                                                                        {"v", forward.v},
                                                                        {"out", forward.out},
                                                                        {"log_sum_exp", forward.log_sum_exp},
                                                                        {"lengths", forward.lengths},
                                                                        {"first_keys", forward.first_keys}});
  return args.dout.elements() > 0;
}

bool check_arguments(Rotary& args, const ArgumentChecks& checks) {
  checks.rank("x", args.x, 4);
  checks.rank("table", args.table, 3);
  const std::int64_t batch = args.x.dim(0), tokens = args.x.dim(1), pairs = args.table.dim(2);
  checks.strided("x", args.x, {batch, tokens, args.x.dim(2), checks.columns("x", args.x)});
  checks.tensor("table", args.table, {args.table.dim(0), 2, pairs}, checks.accumulation());
  checks.require(pairs >= 1 && 2 * pairs <= args.x.dim(3), "the pairs are of a head's elements");
  check_positions(checks, args, args.table, batch, tokens);
  checks.separate({{"x", args.x}}, {{"table", args.table}, {"position_ids", args.position_ids}});
  return args.x.elements() > 0;
}

bool check_arguments(EmbeddingForward& args, const ArgumentChecks& checks) {
  checks.rank("y", args.y, 3);
  const std::int64_t batch = args.y.dim(0), tokens = args.y.dim(1), hidden = checks.columns("y", args.y);
  checks.tensor("y", args.y, {batch, tokens, hidden});
  checks.tensor("ids", args.ids, {batch, tokens}, DType::kI32);
  if (is_tiles(args.tokens.dtype)) {
    checks.tiles("tokens", args.tokens, args.tokens.dim(0) * kTileRows, hidden);
  } else {
    args.tokens = checks.matrix("tokens", args.tokens, checks.rows("tokens", args.tokens), hidden);
  }
  checks.require(args.vocab_begin >= 0, "vocab_begin is not negative");
  if (args.positions) {
    args.positions = checks.matrix("positions", args.positions, checks.rows("positions", args.positions), hidden);
    check_positions(checks, args, args.positions, batch, tokens);
  }
  checks.dropout(args.dropout, tokens);
  checks.separate(
      {{"y", args.y}},
      {{"ids", args.ids}, {"tokens", args.tokens}, {"positions", args.positions}, {"position_ids", args.position_ids}});
  return args.y.elements() > 0;
}

bool check_arguments(EmbeddingBackward& args, const ArgumentChecks& checks) {
  checks.rank("dy", args.dy, 3);
  const std::int64_t batch = args.dy.dim(0), tokens = args.dy.dim(1), hidden = checks.columns("dy", args.dy);
  checks.tensor("dy", args.dy, {batch, tokens, hidden});
  checks.tensor("ids", args.ids, {batch, tokens}, DType::kI32);
  checks.require(args.vocab_begin >= 0, "vocab_begin is not negative");
  const auto table = [&](std::string_view name, const TensorRef& view) {
    return view ? checks.matrix(name, view, checks.rows(name, view), hidden, checks.accumulation()) : view;
  };
  args.dtokens = table("dtokens", args.dtokens);
  args.dpositions = table("dpositions", args.dpositions);
  if (args.dpositions) {
    check_positions(checks, args, args.dpositions, batch, tokens);
  }
  checks.dropout(args.dropout, tokens);
  checks.separate({{"dtokens", args.dtokens}, {"dpositions", args.dpositions}},
                  {{"dy", args.dy}, {"ids", args.ids}, {"position_ids", args.position_ids}});
  return args.dy.elements() > 0 && (args.dtokens || args.dpositions);
}

}  // namespace teratron
