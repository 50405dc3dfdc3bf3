// Scaled dot-product attention (Vaswani et al., arXiv 1706.03762), one query at a time.
//   s_k = scale * q . k_k       p_k = exp(s_k) / sum exp(s)       out = sum over k of m_k p_k v_k
// over the keys k that the query sees; m_k is the dropout factor, 0 or 1/(1-p). Backward, with g_k = m_k dout . v_k:
//   dv_k += m_k p_k dout        ds_k = p_k (g_k - sum p g)
//   dq = scale * sum ds_k k_k   dk_k += scale * ds_k q
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/backend.h"
#include "ops/ref/dropout.h"
#include "ops/ref/elements.h"
#include "ops/ref/memory.h"

namespace teratron::reference {

// A query: local batch entry, head, the key head that it reads, and index. It sees the keys [first_key, keys_seen),
// none if it is padding.
struct Query {
  std::int64_t b, h, g, i, first_key, keys_seen;
};

// The positions of sequence b that are text.
inline std::int64_t length_of(const AttentionForward& args, std::int64_t b) {
  return args.lengths ? args.lengths.as<const std::int32_t>()[b] : args.k.dim(1);
}

inline std::int64_t keys_seen_from(const AttentionForward& args, std::int64_t b, std::int64_t position) {
  const std::int64_t length = length_of(args, b);
  if (position >= length) return 0;
  return args.causal ? position + 1 : length;
}

template <class Visit>
void for_each_query(const AttentionForward& args, const Visit& visit) {
  const std::int64_t queries = args.q.dim(1), keys = args.k.dim(1);
  const Elements<const std::int32_t> first_keys(args.first_keys);
  for (std::int64_t b = 0; b < args.q.dim(0); ++b) {
    for (std::int64_t h = 0; h < args.q.dim(2); ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t first_key = args.first_keys ? first_keys(b, i) : 0;
        visit(Query{b, h, h / args.heads_per_key_head(), i, first_key, keys_seen_from(args, b, keys - queries + i)});
      }
    }
  }
}

// Scores; -infinity for keys that the query does not see.
template <class C>
std::vector<double> scores_of(const AttentionForward& args, const Query& query) {
  const Elements<C> q(args.q), k(args.k);
  std::vector<double> scores(static_cast<std::size_t>(query.keys_seen), -std::numeric_limits<double>::infinity());
  for (std::int64_t key = query.first_key; key < query.keys_seen; ++key) {
    double dot = 0;
    for (std::int64_t d = 0; d < args.q.dim(3); ++d) {
      dot += double{q(query.b, query.i, query.h, d)} * double{k(query.b, key, query.g, d)};
    }
    scores[static_cast<std::size_t>(key)] = args.scale * dot;
  }
  return scores;
}

inline double dropout_of(const AttentionForward& args, const Query& query, std::int64_t key) {
  const std::int64_t first_key = args.dropout.first_position - (args.k.dim(1) - args.q.dim(1));
  return attention_dropout(args.dropout, query.b, query.h, args.dropout.first_position + query.i, first_key + key);
}

template <class C>
void attention_forward(const AttentionForward& args) {
  const Elements<C> out(args.out), v(args.v);
  const Elements<Accumulator<C>> log_sum_exp(args.log_sum_exp);
  for_each_query(args, [&](const Query& query) {
    const auto [b, h, g, i, first_key, keys_seen] = query;
    const std::vector<double> scores = scores_of<C>(args, query);
    const double max = keys_seen > 0 ? *std::max_element(scores.begin(), scores.end()) : 0;
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - max);
    log_sum_exp(b, h, i) = static_cast<Accumulator<C>>(keys_seen > 0 ? max + std::log(sum) : 0);

    std::vector<double> mixed(static_cast<std::size_t>(args.v.dim(3)), 0.0);
    for (std::int64_t key = first_key; key < keys_seen; ++key) {
      const double p = std::exp(scores[static_cast<std::size_t>(key)] - max) / sum;
      const double weight = p * dropout_of(args, query, key);
      for (std::size_t d = 0; d < mixed.size(); ++d) mixed[d] += weight * v(b, key, g, static_cast<std::int64_t>(d));
    }
    for (std::size_t d = 0; d < mixed.size(); ++d)
      out(b, i, h, static_cast<std::int64_t>(d)) = static_cast<C>(mixed[d]);
  });
}

// Key or value gradients, summed over the queries before they are rounded.
class KeyGradient {
 public:
  explicit KeyGradient(const Shape& shape) : shape_(shape), sums_(static_cast<std::size_t>(shape.elements()), 0.0) {}

  double& operator()(std::int64_t b, std::int64_t key, std::int64_t h, std::int64_t d) {
    return sums_[static_cast<std::size_t>(((b * shape_[1] + key) * shape_[2] + h) * shape_[3] + d)];
  }

  template <class T>
  void store_to(const TensorRef& view, bool accumulate) {
    const Elements<T> to(view);
    for (std::int64_t b = 0; b < shape_[0]; ++b) {
      for (std::int64_t key = 0; key < shape_[1]; ++key) {
        for (std::int64_t h = 0; h < shape_[2]; ++h) {
          for (std::int64_t d = 0; d < shape_[3]; ++d) store(to(b, key, h, d), (*this)(b, key, h, d), accumulate);
        }
      }
    }
  }

 private:
  Shape shape_;
  std::vector<double> sums_;
};

template <class C>
void attention_backward(const AttentionBackward& args) {
  const AttentionForward& forward = args.forward;
  const Elements<C> dq(args.dq), dout(args.dout), q(forward.q), k(forward.k), v(forward.v);
  const Elements<Accumulator<C>> log_sum_exp(forward.log_sum_exp);
  const std::int64_t head_size = forward.q.dim(3);
  KeyGradient dk(forward.k.shape), dv(forward.v.shape);
  for_each_query(forward, [&](const Query& query) {
    const auto [b, h, g, i, first_key, keys_seen] = query;
    const std::vector<double> scores = scores_of<C>(forward, query);
    std::vector<double> p(scores.size()), dp(scores.size());
    double sum_pg = 0;
    for (std::int64_t key = first_key; key < keys_seen; ++key) {
      const auto at = static_cast<std::size_t>(key);
      const double m = dropout_of(forward, query, key);
      p[at] = std::exp(scores[at] - log_sum_exp(b, h, i));
      for (std::int64_t d = 0; d < head_size; ++d) {
        dp[at] += m * dout(b, i, h, d) * v(b, key, g, d);
        dv(b, key, g, d) += m * p[at] * dout(b, i, h, d);
      }
      sum_pg += p[at] * dp[at];
    }
    std::vector<double> query_gradient(static_cast<std::size_t>(head_size), 0.0);
    for (std::int64_t key = first_key; key < keys_seen; ++key) {
      const auto at = static_cast<std::size_t>(key);
      const double ds = forward.scale * p[at] * (dp[at] - sum_pg);
      for (std::int64_t d = 0; d < head_size; ++d) {
        query_gradient[static_cast<std::size_t>(d)] += ds * k(b, key, g, d);
        dk(b, key, g, d) += ds * q(b, i, h, d);
      }
    }
    for (std::int64_t d = 0; d < head_size; ++d)
      dq(b, i, h, d) = static_cast<C>(query_gradient[static_cast<std::size_t>(d)]);
  });
  const bool sums_stay = args.dk.dtype != args.dq.dtype;
  sums_stay ? dk.store_to<Accumulator<C>>(args.dk, args.accumulate_kv) : dk.store_to<C>(args.dk, args.accumulate_kv);
  sums_stay ? dv.store_to<Accumulator<C>>(args.dv, args.accumulate_kv) : dv.store_to<C>(args.dv, args.accumulate_kv);
}

// The tokens' keys and values join the cache; then the tokens are the last queries on all that it holds.
template <class C>
void cached_attention(const CachedAttention& args) {
  const std::int64_t tokens = args.q.dim(1);
  const Shape rows{1, args.q.dim(2), tokens};
  std::vector<Accumulator<C>> log_sum_exp(static_cast<std::size_t>(rows.elements()));
  for (std::int64_t b = 0; b < args.q.dim(0); ++b) {
    const std::int64_t begin = args.lengths.as<const std::int32_t>()[b], end = begin + tokens;
    check(begin >= 0 && end <= args.keys.dim(1), "the cache has room for the tokens");
    const auto own = [&](const TensorRef& view) { return view.slice(0, b, b + 1); };
    const TensorRef keys = own(args.keys), values = own(args.values);
    std::vector<std::int32_t> first_keys;
    for (std::int64_t t = 0; t < tokens; ++t) {
      first_keys.push_back(
          static_cast<std::int32_t>(args.window == 0 ? 0 : std::max(begin + t + 1 - args.window, std::int64_t{0})));
    }
    copy(keys.slice(1, begin, end), own(args.k));
    copy(values.slice(1, begin, end), own(args.v));
    attention_forward<C>({.out = own(args.out),
                          .log_sum_exp = {log_sum_exp.data(), accumulation_dtype_of(args.q.dtype), rows},
                          .q = own(args.q),
                          .k = keys.slice(1, 0, end),
                          .v = values.slice(1, 0, end),
                          .first_keys = {first_keys.data(), DType::kI32, {1, tokens}},
                          .scale = args.scale});
  }
}

}  // namespace teratron::reference
