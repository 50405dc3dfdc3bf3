#include "train/run_control.h"

#include <utility>

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

std::string first_said(const Mesh& mesh, std::string own) {
  for (Communicator* const group : {mesh.model.get(), mesh.data.get()}) {
    std::string first;
    for (std::string& text : group->all_gather_host(own)) {
      if (first.empty()) first = std::move(text);
    }
    own = std::move(first);
  }
  return own;
}

}  // namespace teratron
