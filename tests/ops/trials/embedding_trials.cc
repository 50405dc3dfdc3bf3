#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

struct Sizes {
  std::int64_t batch, length, hidden, vocabulary, vocab_begin, first_position, positions;
  Dropout dropout;
  explicit Sizes(Random& random)
      : batch(1 + random.below(3)),
        length(some_rows(random)),
        hidden(some_features(random)),
        vocabulary(random.one_of<std::int64_t>({1, 3, 37, 200})),
        vocab_begin(random.one_of<std::int64_t>({0, 5})),
        first_position(random.below(5)),
        positions(first_position + length + 1 + random.below(4)),
        dropout(some_dropout(random, length)) {
    dropout.random.purpose = RandomPurpose::kEmbeddingDropout;
  }
  // A position of its own for each token, as documents that begin within a sequence have.
  void add_position_ids(Trial& trial, Random& random) const {
    trial.ids("position_ids", {batch, length}, random.integers({batch, length}, 0, positions));
  }
  // Ids on both sides of the part of the vocabulary that is held here; in some trials most are one and the same.
  Values ids(Random& random) const {
    Values ids = random.integers({batch, length}, 0, vocab_begin + vocabulary + 5);
    if (random.coin()) return ids;
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (row % 5 != 0) ids[row] = static_cast<double>(vocab_begin + vocabulary / 2);
    }
    return ids;
  }
  std::string text() const {
    return fmt::format("batch={} tokens={} hidden={} V={} vocab_begin={} first_position={} p={}", batch, length, hidden,
                       vocabulary, vocab_begin, first_position, dropout.probability);
  }
};

Trial forward_trial(Random& random, bool has_position_ids) {
  Sizes sizes(random);
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  trial.ids("ids", {sizes.batch, sizes.length}, sizes.ids(random));
  trial.input("tokens", {sizes.vocabulary, sizes.hidden}, random.normals({sizes.vocabulary, sizes.hidden}));
  // A rank that holds part of the vocabulary leaves the positions to be added once.
  const bool has_positions = random.below(3) > 0;
  if (has_positions) {
    trial.input("positions", {sizes.positions, sizes.hidden}, random.normals({sizes.positions, sizes.hidden}));
  }
  if (has_position_ids) sizes.add_position_ids(trial, random);
  trial.output("y", {sizes.batch, sizes.length, sizes.hidden}, sum_tolerance(1, 4, 1));
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.embedding_forward({.y = views["y"],
                               .ids = views["ids"],
                               .tokens = views["tokens"],
                               .positions = views["positions"],
                               .first_position = sizes.first_position,
                               .vocab_begin = sizes.vocab_begin,
                               .position_ids = views["position_ids"],
                               .dropout = with_counters(sizes.dropout, views)});
  };
  return trial;
}

Trial backward_trial(Random& random, bool has_position_ids) {
  Sizes sizes(random);
  const bool accumulate_tokens = random.coin(), accumulate_positions = random.coin();
  Trial trial{.sizes = fmt::format("{} accumulate_tokens={} accumulate_positions={}", sizes.text(), accumulate_tokens,
                                   accumulate_positions),
              .arguments = {},
              .run = {}};
  const Shape dy{sizes.batch, sizes.length, sizes.hidden};
  trial.ids("ids", {sizes.batch, sizes.length}, sizes.ids(random));
  if (has_position_ids) sizes.add_position_ids(trial, random);
  trial.input("dy", dy, random.normals(dy));
  const Tolerance tolerance = sum_tolerance(sizes.batch * sizes.length, 4, 1);
  const auto add_table = [&](const char* name, const Shape& shape, bool accumulate) {
    if (accumulate) {
      trial.in_out(name, shape, random.normals(shape), tolerance, Precision::kAccumulation);
    } else {
      trial.output(name, shape, tolerance, Precision::kAccumulation);
    }
  };
  const auto absent = random.one_of<std::string>({"", "", "dtokens", "dpositions"});
  if (absent != "dtokens") add_table("dtokens", {sizes.vocabulary, sizes.hidden}, accumulate_tokens);
  if (absent != "dpositions") add_table("dpositions", {sizes.positions, sizes.hidden}, accumulate_positions);
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.embedding_backward({.dtokens = views["dtokens"],
                                .dpositions = views["dpositions"],
                                .dy = views["dy"],
                                .ids = views["ids"],
                                .first_position = sizes.first_position,
                                .vocab_begin = sizes.vocab_begin,
                                .position_ids = views["position_ids"],
                                .dropout = with_counters(sizes.dropout, views),
                                .accumulate_tokens = accumulate_tokens,
                                .accumulate_positions = accumulate_positions});
  };
  return trial;
}

}  // namespace

Trial embedding_forward_trial(Random& random) { return forward_trial(random, false); }

Trial embedding_backward_trial(Random& random) { return backward_trial(random, false); }

Trial document_embedding_forward_trial(Random& random) { return forward_trial(random, true); }

Trial document_embedding_backward_trial(Random& random) { return backward_trial(random, true); }

}  // namespace teratron::testing
