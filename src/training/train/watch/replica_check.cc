#include "train/watch/replica_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/checksum.h"
#include "train/run_control.h"

namespace teratron {
namespace {

// A tensor that this rank holds: its name, with the number of the part if it is split, and its checksum.
using Digests = std::vector<std::pair<std::string, std::string>>;

std::string digest_of(Backend& backend, const TensorRef& tensor) {
  constexpr std::int64_t kPieceBytes = 1 << 22;
  const std::int64_t piece_elements = kPieceBytes / size_of(tensor.dtype);
  Checksum checksum;
  std::vector<std::byte> bytes;
  for (std::int64_t begin = 0; begin < tensor.elements(); begin += piece_elements) {
    const TensorRef piece = slice_of(tensor, {begin, std::min(begin + piece_elements, tensor.elements())});
    bytes.resize(static_cast<std::size_t>(piece.bytes()));
    backend.download(bytes.data(), piece);
    checksum.update(bytes);
  }
  return checksum.digest();
}

Digests digests_of(Executor& executor) {
  Digests digests;
  for (const Parameter* parameter : executor.parameters()) {
    const std::string part = parameter->is_split() && parameter->group.size > 1
                                 ? fmt::format(" (part {})", parameter->group.rank)
                                 : std::string();
    const auto add = [&](const std::string& slot, const TensorRef& tensor) {
      if (!tensor) return;
      digests.emplace_back(fmt::format("'{}{}'{}", parameter->name, slot, part), digest_of(executor.backend(), tensor));
    };
    add("", parameter->value);
    if (parameter->sharding.ranks > 1) continue;
    add(".master", parameter->state.master);
    for (const OptimizerSlot& slot : parameter->state.slots) add("." + slot.name, slot.values);
  }
  return digests;
}

std::string text_of_ranks(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// `holders`: ranks by the checksum of the tensor that they hold; more than one of them.
std::string text_of(const std::string& tensor, const std::map<std::string, std::vector<int>>& holders) {
  const auto most = std::ranges::max_element(holders, {}, [](const auto& holder) { return holder.second.size(); });
  std::vector<int> others;
  for (auto holder = holders.begin(); holder != holders.end(); ++holder) {
    if (holder != most) others.insert(others.end(), holder->second.begin(), holder->second.end());
  }
  std::ranges::sort(others);
  if (others.size() == most->second.size()) {  // nobody knows who is right
    return fmt::format("{} and {} hold different bits of {}", text_of_ranks(most->second), text_of_ranks(others),
                       tensor);
  }
  return fmt::format("{} hold{} other bits of {} than {}", text_of_ranks(others), others.size() == 1 ? "s" : "", tensor,
                     text_of_ranks(most->second));
}

// Compares tensors of one name within a group; the first that differs, in this rank's order.
std::string first_unequal(Communicator& group, int world_rank, const Digests& own) {
  if (group.size() == 1) return "";
  const std::vector<int> ranks = group.all_gather_host(world_rank);
  std::map<std::string, std::map<std::string, std::vector<int>>> holders;
  const std::vector<std::string> texts = group.all_gather_host(nlohmann::json(own).dump());
  for (std::size_t member = 0; member < texts.size(); ++member) {
    for (const auto& [tensor, digest] : nlohmann::json::parse(texts[member]).get<Digests>()) {
      holders[tensor][digest].push_back(ranks[member]);
    }
  }
  for (const auto& [tensor, digest] : own) {
    if (holders.at(tensor).size() > 1) return text_of(tensor, holders.at(tensor));
  }
  return "";
}

// Text on all ranks that names the first tensor with other bits; empty where replicas are equal.
std::string unequal_replicas(Executor& executor) {
  const Mesh& mesh = executor.mesh();
  const Digests own = digests_of(executor);
  const int world_rank = mesh.data->rank() * mesh.model->size() + mesh.model->rank();
  std::string found;
  for (Communicator* const group : {mesh.data.get(), mesh.tensor.get(), mesh.ends.get()}) {
    const std::string in_group = first_unequal(*group, world_rank, own);
    if (found.empty()) found = in_group;
  }
  return first_said(mesh, std::move(found));
}

}  // namespace

void ReplicaCheck::require_equal(Executor& executor, std::int64_t iteration) {
  note_activity({.name = "check of replicas", .iteration = iteration});
  const std::string unequal = unequal_replicas(executor);
  if (!unequal.empty()) {
    throw_environment_error(
        "after iteration {}, {}. They were equal after iteration {}; memory, a device or a transfer is at fault since. "
        "Nothing is saved; go on from a checkpoint of then or earlier (--load DIR --iteration N), on another machine "
        "if it happens again",
        iteration, unequal, were_equal_);
  }
  were_equal_ = iteration;
}

}  // namespace teratron
