#include "train/run_control.h"

namespace teratron {

void Requests::ask_to_end(int signal) {
  for (std::size_t i = 0; i < kEndSignals.size(); ++i) {
    if (kEndSignals[i] == signal) counts_[i] = 1;
  }
}

int Requests::signal() const {
  for (std::size_t i = 0; i < kEndSignals.size(); ++i) {
    if (counts_[i] > 0) return kEndSignals[i];
  }
  return 0;
}

}  // namespace teratron
