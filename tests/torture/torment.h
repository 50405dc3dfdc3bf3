// A command that is disturbed and run again, and the results that it must have.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "torture/disturbance.h"
#include "torture/scenarios.h"

namespace teratron::torture {

// A run that nobody disturbed.
struct Reference {
  Extent extent;
  Tree before, results;
  std::vector<std::string> losses;  // "ITERATION: LOSS", in order
};

class Torment {
 public:
  // Writes the log of calls to `log`.
  Torment(const Workplace& place, const Scenario& scenario, std::filesystem::path log);

  // Looks at disks after power failures at all its calls, too.
  Reference refer();
  // Disturbs the command once to three times, and expects the reference's results of it in the end. Failures are
  // GoogleTest's.
  void disturb(const Reference& reference, RandomSequence& random);

 private:
  void begin() const;
  testing::Outcome run(const Disturbance& disturbance) const;
  bool disturb_once(const Disturbance& disturbance, const Reference& reference, RandomSequence& random);
  bool was_done_already(const testing::Outcome& outcome, const Reference& reference) const;
  void expect_clear_error(const testing::Outcome& outcome) const;
  void expect_of_one_run(const Tree& is, const Reference& reference) const;
  void expect_whole_checkpoints(const Tree& is, const Reference& reference) const;
  void expect_results(const Reference& reference, bool alone) const;
  Tree results() const;
  std::vector<std::string> losses() const;
  std::int64_t saved_iteration() const;

  const Workplace& place_;
  const Scenario& scenario_;
  const std::filesystem::path log_;
  std::string history_;
};

}  // namespace teratron::torture
