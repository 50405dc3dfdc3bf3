#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

struct Sizes {
  Shape shape;
  Dropout dropout;
  explicit Sizes(Random& random) : shape{1 + random.below(3), some_rows(random), some_features(random)} {
    dropout = some_dropout(random, shape[1]);
  }
  std::string text() const { return fmt::format("[batch, tokens, hidden]={} p={}", shape, dropout.probability); }
};

}  // namespace

Trial residual_add_trial(Random& random) {
  Sizes sizes(random);
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  trial.input("residual", sizes.shape, random.normals(sizes.shape));
  trial.input("branch", sizes.shape, random.normals(sizes.shape));
  trial.output("sum", sizes.shape, sum_tolerance(1, 4, 1));
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.residual_add({.sum = views["sum"],
                          .residual = views["residual"],
                          .branch = views["branch"],
                          .dropout = with_counters(sizes.dropout, views)});
  };
  return trial;
}

Trial residual_add_in_place_trial(Random& random) {
  Sizes sizes(random);
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  trial.input("branch", sizes.shape, random.normals(sizes.shape));
  trial.in_out("sum", sizes.shape, random.normals(sizes.shape), sum_tolerance(1, 4, 1));
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.residual_add({.sum = views["sum"],
                          .residual = views["sum"],
                          .branch = views["branch"],
                          .dropout = with_counters(sizes.dropout, views)});
  };
  return trial;
}

Trial dropout_backward_trial(Random& random) {
  Sizes sizes(random);
  const bool in_place = random.coin();
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  const Tolerance tolerance = sum_tolerance(1, 4, 1);
  if (in_place) {
    trial.in_out("dbranch", sizes.shape, random.normals(sizes.shape), tolerance);
  } else {
    trial.input("dsum", sizes.shape, random.normals(sizes.shape));
    trial.output("dbranch", sizes.shape, tolerance);
  }
  move_counters(trial, random, sizes.dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.dropout_backward({.dbranch = views["dbranch"],
                              .dsum = views[in_place ? "dbranch" : "dsum"],
                              .dropout = with_counters(sizes.dropout, views)});
  };
  return trial;
}

}  // namespace teratron::testing
