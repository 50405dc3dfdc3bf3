// Requests to end a run early or to save a checkpoint, and how ranks agree on them. A signal may come to one rank
// alone, and clocks differ. So every rank adds its requests to values that ranks sum with every update anyway, and all
// of them read the same sums after the same update.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/host/monotonic_clock.h"
#include "comm/mesh.h"
#include "runtime/end_signals.h"

namespace teratron {

// Signals and clocks of a run. Tests replace them.
struct RunControl {
  std::function<int()> signal = [] { return 0; };       // one of kEndSignals that came to this process; 0: none
  std::function<double()> seconds = monotonic_seconds;  // the first rank's count
  double began = seconds();                             // of the command, on that clock
};

// Whether a setting's minutes are over after so many seconds; 0 minutes never are.
inline bool has_passed(double minutes, double seconds) { return minutes > 0 && seconds >= 60 * minutes; }

class Requests {
 public:
  void ask_to_end(int signal);
  void ask_to_save() { counts_[kSave] = 1; }
  void say_time_is_up() { counts_[kTime] = 1; }
  void say_corpus_fails() { counts_[kCorpus] = 1; }

  std::span<double> counts() { return counts_; }  // to be summed over all ranks

  int signal() const;  // the first of kEndSignals that anybody got; 0: none
  bool save_is_due() const { return counts_[kSave] > 0; }
  bool time_is_up() const { return counts_[kTime] > 0; }
  bool corpus_fails() const { return counts_[kCorpus] > 0; }

 private:
  static constexpr std::size_t kSave = kEndSignals.size(), kTime = kSave + 1, kCorpus = kTime + 1;
  std::array<double, kCorpus + 1> counts_{};
};

// The first text of all ranks that is not empty, on all of them. Every rank of the mesh calls it.
std::string first_said(const Mesh& mesh, std::string own);

}  // namespace teratron
