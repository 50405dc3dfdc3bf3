#include "tasks/label_names.h"

#include <array>

namespace teratron {
namespace {

constexpr std::array<std::string_view, 3> kMnli = {"contradiction", "entailment", "neutral"};
constexpr std::array<std::string_view, 2> kQqp = {"not_duplicate", "duplicate"};

}  // namespace

std::span<const std::string_view> label_names(TaskKind task) {
  switch (task) {
    case TaskKind::kMnli: return kMnli;
    case TaskKind::kQqp: return kQqp;
    default: return {};
  }
}

}  // namespace teratron
