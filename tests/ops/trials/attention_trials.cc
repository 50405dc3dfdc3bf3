#include "ops/trials/operations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace teratron::testing {
namespace {

enum class Layout {
  kSeparate,  // q, k, v contiguous
  kPacked,    // parts of one projection [B, S, H + 2 G, D]; no context
  kCache,     // q contiguous; k and v the first S_k rows of a longer cache [B, longest, 2, G, D]
};

// How many query heads read one key head.
std::int64_t some_shared(Random& random) { return random.one_of<std::int64_t>({1, 1, 2, 3}); }

struct Parts {
  TensorRef q, k, v;
};

// The parts of a packed projection [B, S, H + 2 G, D].
Parts parts_of(const TensorRef& packed, std::int64_t heads, std::int64_t key_heads) {
  return {packed.slice(2, 0, heads), packed.slice(2, heads, heads + key_heads),
          packed.slice(2, heads + key_heads, heads + 2 * key_heads)};
}

struct Sizes {
  std::int64_t batch, queries, keys, key_heads, heads, head_size;
  Layout layout;
  bool causal;
  Dropout dropout;
  Values lengths = {};     // of the sequences; empty: without padding
  bool poisons = false;    // padding is NaN
  Values first_keys = {};  // [batch, queries]; empty: queries see from key 0 on

  explicit Sizes(Random& random)
      : batch(1 + random.below(2)),
        queries(some_rows(random)),
        keys(0),
        key_heads(1 + random.below(3)),
        heads(key_heads),
        head_size(random.one_of<std::int64_t>({1, 5, 8, 16, 64, 80, 96, 128})),
        layout(random.one_of({Layout::kSeparate, Layout::kPacked, Layout::kCache})),
        causal(random.below(4) > 0) {
    if (random.coin()) choose_tile_edges(random);
    heads = key_heads * some_shared(random);
    keys = queries;
    if (layout != Layout::kPacked) keys += random.one_of<std::int64_t>({0, 1, 17, 63, 64, 70, 160, 200});
    dropout = some_dropout(random, queries, heads);
    dropout.random.purpose = RandomPurpose::kAttentionDropout;
    dropout.first_position += keys - queries;
    dropout.sequence_length += keys - queries;
  }

  // Sizes that kernels for tensor cores take, around the sizes of their tiles.
  void choose_tile_edges(Random& random) {
    batch = key_heads = 1;
    queries = random.one_of<std::int64_t>({1, 15, 63, 64, 65, 129, 130});
    head_size = random.one_of<std::int64_t>({64, 80, 96, 128});
  }

  // Sizes that libraries have kernels for.
  static Sizes plain(Random& random) {
    Sizes sizes(random);
    const std::int64_t context = sizes.keys - sizes.queries;
    sizes.queries = random.one_of<std::int64_t>({2, 3, 17, 64, 65, 130});
    sizes.keys = sizes.queries + context;
    sizes.head_size = random.one_of<std::int64_t>({8, 16, 64, 80, 96, 128});
    sizes.dropout = {};
    sizes.heads = sizes.key_heads;
    return sizes;
  }

  // Two heads that share their keys, rows around the ends of tiles, and a cache before them if there is context.
  static Sizes of_matrices(Random& random, const MatrixAttention& asked, std::int64_t longest_context) {
    Sizes sizes(random);
    const std::int64_t context = asked.context ? longest_context : 0;
    sizes.batch = sizes.key_heads = 1;
    sizes.heads = 2;
    sizes.queries = 131;
    sizes.keys = sizes.queries + context;
    sizes.head_size = asked.head_size;
    sizes.layout = Layout::kSeparate;
    sizes.causal = asked.causal;
    sizes.dropout.probability = asked.dropout ? 0.1 : 0;
    sizes.dropout.first_sample = sizes.dropout.first_head = 0;
    sizes.dropout.heads = 2;
    sizes.dropout.first_position = context + (asked.aligned ? 8 : 3);
    sizes.dropout.sequence_length = sizes.dropout.first_position + sizes.queries;
    return sizes;
  }

  // Sequences of different lengths: nothing, one, as far as the queries, a query, prime numbers, all.
  static Sizes padded(Random& random) {
    Sizes sizes(random);
    sizes.batch = 1 + random.below(3);
    const std::int64_t context = sizes.keys - sizes.queries;
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      const std::int64_t some = random.below(sizes.keys + 1);
      const auto length =
          random.one_of<std::int64_t>({0, 1, context, context + 1, 13, 61, 67, 97, some, some, sizes.keys});
      sizes.lengths.push_back(static_cast<double>(std::min(length, sizes.keys)));
    }
    sizes.poisons = random.coin();
    return sizes;
  }

  // Documents that share a sequence: of one token, of a few, of many, or none that ends. Half of the trials pad.
  static Sizes of_documents(Random& random) {
    Sizes sizes = random.coin() ? padded(random) : Sizes(random);
    sizes.causal = true;
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      const auto longest = random.one_of<std::int64_t>({1, 3, 20, 70, 200, 1000});
      std::int64_t first = 0, end = 1 + random.below(longest);
      for (std::int64_t position = 0; position < sizes.keys; ++position) {
        if (position == end) {
          first = end;
          end += 1 + random.below(longest);
        }
        if (position >= sizes.keys - sizes.queries) sizes.first_keys.push_back(static_cast<double>(first));
      }
    }
    return sizes;
  }

  // Whatever the kernels for Hopper take.
  static Sizes of_hopper(Random& random) {
    Sizes sizes = random.below(3) == 0 ? of_documents(random) : random.coin() ? padded(random) : Sizes(random);
    sizes.head_size = random.one_of<std::int64_t>({8, 64, 80, 96, 128});
    return sizes;
  }

  std::int64_t cache_length() const { return keys + 3; }
  Shape query_shape() const { return {batch, queries, heads, head_size}; }
  Shape key_shape() const { return {batch, keys, key_heads, head_size}; }
  std::string text() const {
    return fmt::format("B={} S_q={} S_k={} H={} G={} D={} layout={} causal={} p={} lengths={} poisons={} first_keys={}",
                       batch, queries, keys, heads, key_heads, head_size, static_cast<int>(layout), causal,
                       dropout.probability, fmt::join(lengths, ","), poisons, fmt::join(first_keys, ","));
  }
};

// The views of q, k and v, or with prefix "d" of their gradients, in the trial's layout.
Parts parts_of(const Views& views, const Sizes& sizes, const std::string& prefix) {
  switch (sizes.layout) {
    case Layout::kSeparate: return {views[prefix + "q"], views[prefix + "k"], views[prefix + "v"]};
    case Layout::kPacked: return parts_of(views[prefix + "qkv"], sizes.heads, sizes.key_heads);
    case Layout::kCache: {
      const TensorRef used = views[prefix + "kv"].slice(1, 0, sizes.keys);
      return {views[prefix + "q"], used.select(2, 0), used.select(2, 1)};
    }
  }
  return {};
}

struct NamedShape {
  std::string name;
  Shape shape;
};

// The arguments that hold q, k and v.
std::vector<NamedShape> memory_of_parts(const Sizes& sizes) {
  const Shape cache{sizes.batch, sizes.cache_length(), 2, sizes.key_heads, sizes.head_size};
  switch (sizes.layout) {
    case Layout::kSeparate: return {{"q", sizes.query_shape()}, {"k", sizes.key_shape()}, {"v", sizes.key_shape()}};
    case Layout::kPacked:
      return {{"qkv", {sizes.batch, sizes.queries, sizes.heads + 2 * sizes.key_heads, sizes.head_size}}};
    case Layout::kCache: return {{"q", sizes.query_shape()}, {"kv", cache}};
  }
  return {};
}

AttentionForward forward_of(const Views& views, const Sizes& sizes) {
  const Parts parts = parts_of(views, sizes, "");
  return {.out = views["out"],
          .log_sum_exp = views["log_sum_exp"],
          .q = parts.q,
          .k = parts.k,
          .v = parts.v,
          .lengths = views["lengths"],
          .first_keys = views["first_keys"],
          .causal = sizes.causal,
          .scale = 1 / std::sqrt(static_cast<double>(sizes.head_size)),
          .dropout = with_counters(sizes.dropout, views)};
}

// Normal values [B, rows, ..], of which row 0 is position `first`. Where the trial poisons, padding is NaN.
Values some_values(Random& random, const Sizes& sizes, const Shape& shape, std::int64_t first) {
  Values values = random.normals(shape);
  if (!sizes.poisons || values.empty()) return values;
  const std::size_t rows = static_cast<std::size_t>(shape[1]), row_size = values.size() / rows / sizes.lengths.size();
  for (std::size_t e = 0; e < values.size(); ++e) {
    const std::size_t row = e / row_size;
    if (static_cast<double>(first) + static_cast<double>(row % rows) >= sizes.lengths[row / rows])
      values[e] = std::nan("");
  }
  return values;
}

// The memory of q, k and v, and what is masked.
void add_inputs(Trial& trial, Random& random, const Sizes& sizes) {
  for (const auto& [name, shape] : memory_of_parts(sizes)) {
    trial.input(name, shape, some_values(random, sizes, shape, name == "q" ? sizes.keys - sizes.queries : 0));
  }
  if (!sizes.lengths.empty()) trial.ids("lengths", {sizes.batch}, sizes.lengths);
  if (!sizes.first_keys.empty()) trial.ids("first_keys", {sizes.batch, sizes.queries}, sizes.first_keys);
}

// Error of a result, in roundoffs of storage, from probabilities that were rounded to C before they were multiplied:
// each is off by one roundoff of itself at most, they add up to 1, and dropout doubles the mixed values, normal ones of
// at most 4. None for f32 and f64, which store what they compute.
constexpr double kRoundedProbabilities = 8;

Trial forward_trial(Random& random, Sizes sizes) {
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  add_inputs(trial, random, sizes);
  // A score's rounding (D products) is a probability's relative error; S_k probabilities are mixed.
  const Tolerance tolerance =
      sum_tolerance(sizes.keys + sizes.head_size, 24, 1).in_products(sizes.keys + sizes.head_size);
  trial.output("out", sizes.query_shape(), tolerance.carrying(kRoundedProbabilities));
  trial.output("log_sum_exp", {sizes.batch, sizes.heads, sizes.queries}, tolerance, Precision::kAccumulation);
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) { backend.attention_forward(forward_of(views, sizes)); };
  return trial;
}

// The forward pass runs too, for `out` and `log_sum_exp` as the back end itself leaves them.
Trial backward_trial(Random& random, Sizes sizes, bool accumulate, bool keeps_sums) {
  Trial trial{.sizes = fmt::format("{} accumulate={} keeps_sums={}", sizes.text(), accumulate, keeps_sums),
              .arguments = {},
              .run = {}};
  const Tolerance tolerance =
      sum_tolerance(sizes.keys + sizes.head_size, 32, 1).in_products(sizes.keys + sizes.head_size);
  // Through D = dout . out, with `out` as stored: D's error is that of D elements, so sqrt(D) times one's, which the
  // scale of 1 / sqrt(D) undoes; times a normal k or q and a probability that is near 1 where there are few keys. And
  // through p and ds as stored: scale * ds is p times normal values (dropout doubles them), as p is.
  const Tolerance gradient = tolerance.carrying(8 + kRoundedProbabilities);
  add_inputs(trial, random, sizes);
  for (const auto& [name, shape] : memory_of_parts(sizes)) {
    // Where q shares memory with k and v, its own part is overwritten either way, and all are of one type.
    const bool of_keys = name != "q";
    const Precision precision = of_keys && keeps_sums ? Precision::kAccumulation : Precision::kCompute;
    if (accumulate && of_keys) {
      trial.in_out("d" + name, shape, random.normals(shape), gradient, precision);
    } else {
      trial.output("d" + name, shape, gradient, precision);
    }
  }
  trial.output("out", sizes.query_shape(), tolerance.carrying(kRoundedProbabilities));
  trial.output("log_sum_exp", {sizes.batch, sizes.heads, sizes.queries}, tolerance, Precision::kAccumulation);
  const Shape queries = sizes.query_shape();
  trial.input("dout", queries, some_values(random, sizes, queries, sizes.keys - sizes.queries));
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    const AttentionForward forward = forward_of(views, sizes);
    backend.attention_forward(forward);
    const Parts gradients = parts_of(views, sizes, "d");
    backend.attention_backward({.dq = gradients.q,
                                .dk = gradients.k,
                                .dv = gradients.v,
                                .dout = views["dout"],
                                .forward = forward,
                                .accumulate_kv = accumulate});
  };
  return trial;
}

Trial any_backward_trial(Random& random, const Sizes& sizes) {
  const bool accumulate = random.coin(), keeps_sums = sizes.layout != Layout::kPacked && random.coin();
  return backward_trial(random, sizes, accumulate, keeps_sums);
}

}  // namespace

Trial attention_forward_trial(Random& random) { return forward_trial(random, Sizes(random)); }

Trial attention_backward_trial(Random& random) { return any_backward_trial(random, Sizes(random)); }

Trial padded_attention_forward_trial(Random& random) { return forward_trial(random, Sizes::padded(random)); }

Trial padded_attention_backward_trial(Random& random) { return any_backward_trial(random, Sizes::padded(random)); }

Trial document_attention_forward_trial(Random& random) { return forward_trial(random, Sizes::of_documents(random)); }

Trial document_attention_backward_trial(Random& random) {
  return any_backward_trial(random, Sizes::of_documents(random));
}

// Caches and tokens as parts of packed projections. The cache after its length must not be read: NaN. Longer caches
// have parts of multiples of 128 keys on a GPU, longer or none where there are many heads. The text may end before, in,
// or between. Sequences of a call have lengths of their own.
Trial cached_attention_trial(Random& random) {
  const bool many = random.below(3) == 0;
  const std::int64_t batch = 1 + random.below(2), key_heads = many ? 40 + random.below(30) : 1 + random.below(3);
  const std::int64_t heads = key_heads * some_shared(random);
  const auto window = random.one_of<std::int64_t>({0, 0, 1, 5, 100, 128});
  const std::int64_t tokens = random.one_of<std::int64_t>({0, 1, 1, 1, 2, 5});
  const std::int64_t head_size = many ? random.one_of<std::int64_t>({1, 5, 8, 16})
                                      : random.one_of<std::int64_t>({1, 5, 8, 16, 64, 80, 96, 128, 130, 256});
  std::vector<double> lengths;
  for (std::int64_t b = 0; b < batch; ++b) {
    lengths.push_back(random.one_of<double>({0, 1, 17, 31, 32, 33, 64, 127, 128, 129, 200, 255, 256, 383, 511}));
  }
  const auto longest = static_cast<std::int64_t>(*std::max_element(lengths.begin(), lengths.end()));
  const std::int64_t room = longest + tokens + random.one_of<std::int64_t>({0, 0, 3, 130, 400});
  const Shape packed{batch, tokens, heads + 2 * key_heads, head_size}, cache{batch, room, 2, key_heads, head_size};
  Trial trial{.sizes = fmt::format("B={} T={} n={} S={} H={} G={} D={} window={}", batch, tokens,
                                   fmt::join(lengths, ","), room, heads, key_heads, head_size, window),
              .arguments = {},
              .run = {}};
  Values cached = random.normals(cache);
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto row = cached.begin() + b * cache.elements() / batch;
    const auto length = static_cast<std::int64_t>(lengths[static_cast<std::size_t>(b)]);
    std::fill(row + length * 2 * key_heads * head_size, row + room * 2 * key_heads * head_size, std::nan(""));
  }
  trial.input("qkv", packed, random.normals(packed));
  trial.in_out("cache", cache, std::move(cached), {});
  trial.ids("lengths", {batch}, lengths);
  trial.output("out", {batch, tokens, heads, head_size},
               sum_tolerance(longest + tokens + head_size, 24, 1).carrying(kRoundedProbabilities));
  trial.run = [=](Backend& backend, const Views& views) {
    const Parts parts = parts_of(views["qkv"], heads, key_heads);
    const TensorRef kv = views["cache"];
    backend.cached_attention({.out = views["out"],
                              .q = parts.q,
                              .k = parts.k,
                              .v = parts.v,
                              .keys = kv.select(2, 0),
                              .values = kv.select(2, 1),
                              .lengths = views["lengths"],
                              .scale = 1 / std::sqrt(static_cast<double>(head_size)),
                              .window = window});
  };
  return trial;
}

Trial matrix_attention_trial(Random& random, const MatrixAttention& asked) {
  return any_backward_trial(random, Sizes::of_matrices(random, asked, 69));
}

Trial hopper_attention_trial(Random& random) { return any_backward_trial(random, Sizes::of_hopper(random)); }

Trial hopper_attention_trial(Random& random, const MatrixAttention& asked) {
  constexpr std::int64_t kContext = 125;  // with the queries, two tiles of keys
  return backward_trial(random, Sizes::of_matrices(random, asked, kContext), asked.causal, asked.context);
}

Trial hopper_tiles_trial(Random& random, bool backward) {
  const MatrixAttention asked{.head_size = 64, .context = true, .dropout = true};
  const Sizes sizes = Sizes::of_matrices(random, asked, backward ? 128 : 400);
  return backward ? backward_trial(random, sizes, false, false) : forward_trial(random, sizes);
}

Trial hopper_padding_trial(Random& random, bool backward) {
  Sizes sizes = Sizes::of_matrices(random, {.head_size = 64}, 0);
  sizes.lengths = {static_cast<double>(sizes.keys - 30)};
  sizes.poisons = true;
  return backward ? backward_trial(random, sizes, false, false) : forward_trial(random, sizes);
}

Trial plain_attention_forward_trial(Random& random) {
  const Sizes sizes = Sizes::plain(random);
  return forward_trial(random, sizes);
}

Trial plain_attention_backward_trial(Random& random) {
  const Sizes sizes = Sizes::plain(random);
  return backward_trial(random, sizes, false, false);
}

}  // namespace teratron::testing
