#include "comm/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>

namespace teratron::testing {
namespace {

// Values are carried as doubles, which hold every value used here exactly.
std::vector<std::byte> encode(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes;
  const auto put = [&](auto value) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof(value));
  };
  bytes.reserve(values.size() * static_cast<std::size_t>(size_of(dtype)));
  for (const double value : values) {
    switch (dtype) {
      case DType::kF64: put(value); break;
      case DType::kF32: put(static_cast<float>(value)); break;
      case DType::kBF16: put(float_to_bf16(static_cast<float>(value))); break;
      case DType::kF16: put(float_to_f16(static_cast<float>(value))); break;
      case DType::kI64: put(static_cast<std::int64_t>(value)); break;
      case DType::kI32: put(static_cast<std::int32_t>(value)); break;
      case DType::kU16: put(static_cast<std::uint16_t>(value)); break;
      case DType::kU8: put(static_cast<std::uint8_t>(value)); break;
      case DType::kQ8Tile:
      case DType::kQ4Tile: throw std::logic_error("tiles do not travel");
    }
  }
  return bytes;
}

float rounded_to(DType dtype, float value) {
  if (dtype == DType::kBF16) return bf16_to_float(float_to_bf16(value));
  if (dtype == DType::kF16) return f16_to_float(float_to_f16(value));
  return value;
}

bool is_number(DType dtype) { return dtype != DType::kU8 && dtype != DType::kU16; }

std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
  std::uint32_t x = a * 0x9e3779b9U ^ (b + 0x85ebca6bU + (a << 6));
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  return x ^ (x >> 15);
}

void upload(Backend& memory, const TensorRef& view, const std::vector<double>& values) {
  memory.upload(view, encode(view.dtype, values).data());
}

}  // namespace

RunningTrial::RunningTrial(Communicator& group, const std::vector<int>& members, Backend& memory, const Trial& trial)
    : group_(group), members_(members), memory_(memory), trial_(trial) {
  start();
}

// Input of a member. Small integers: no sum of them is rounded in any dtype, even of 8 bits or 8 bits of mantissa.
std::vector<double> RunningTrial::brought(int member, std::int64_t count) const {
  std::vector<double> values(static_cast<std::size_t>(count));
  const auto rank = static_cast<std::uint32_t>(members_[static_cast<std::size_t>(member)]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = mix(mix(trial_.salt, rank), static_cast<std::uint32_t>(i));
    if (trial_.fractions) {
      values[i] = double{rounded_to(trial_.dtype, (static_cast<float>(bits >> 8) / 8388608.0F - 1.0F) * 3.0F)};
    } else {
      values[i] = static_cast<double>(bits % 13) - (is_number(trial_.dtype) ? 6 : 0);
    }
  }
  return values;
}

std::vector<double> RunningTrial::expected() const {
  const int size = group_.size(), rank = group_.rank();
  const std::int64_t n = trial_.elements;
  std::vector<double> result;
  switch (trial_.collective) {
    case Collective::kAllGather:
      for (int member = 0; member < size; ++member) {
        const auto part = brought(member, n);
        result.insert(result.end(), part.begin(), part.end());
      }
      return result;
    case Collective::kBroadcast: return brought(trial_.root, n);
    case Collective::kSend:
    case Collective::kReceive: return brought((rank + size - 1 - trial_.root % (size - 1)) % size, n);
    case Collective::kAllReduce:
    case Collective::kReduceScatter: break;
  }
  const bool scatter = trial_.collective == Collective::kReduceScatter;
  const std::int64_t whole = scatter ? size * n : n;
  result = brought(0, whole);
  for (int member = 1; member < size; ++member) {
    const auto next = brought(member, whole);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (trial_.op == ReduceOp::kMax) {
        result[i] = std::max(result[i], next[i]);
      } else {
        result[i] = trial_.fractions ? double{static_cast<float>(result[i]) + static_cast<float>(next[i])}
                                     : result[i] + next[i];
      }
    }
  }
  if (scatter) result.assign(result.begin() + rank * n, result.begin() + (rank + 1) * n);
  if (trial_.fractions) {
    for (double& value : result) value = double{rounded_to(trial_.dtype, static_cast<float>(value))};
  }
  return result;
}

void RunningTrial::start() {
  const int size = group_.size(), rank = group_.rank();
  const std::int64_t n = trial_.elements;
  const bool in_place = trial_.in_place || size == 1;
  const auto tensor = [&](std::int64_t count) { return Tensor(memory_, trial_.dtype, {count}); };
  switch (trial_.collective) {
    case Collective::kAllReduce:
      out_ = tensor(n);
      upload(memory_, out_, brought(rank, n));
      first_ = group_.start_all_reduce(out_, trial_.op);
      return;
    case Collective::kBroadcast:
      out_ = tensor(n);
      upload(memory_, out_, brought(rank, n));
      first_ = group_.start_broadcast(out_, trial_.root);
      return;
    case Collective::kAllGather: {
      out_ = tensor(size * n);
      if (!in_place) in_ = tensor(n);
      const TensorRef in = in_place ? out_.ref().slice(0, rank * n, (rank + 1) * n) : in_.ref();
      upload(memory_, in, brought(rank, n));
      first_ = group_.start_all_gather(out_, in);
      return;
    }
    case Collective::kReduceScatter: {
      in_ = tensor(size * n);
      if (!in_place) out_ = tensor(n);
      upload(memory_, in_, brought(rank, size * n));
      const TensorRef out = in_place ? in_.ref().slice(0, rank * n, (rank + 1) * n) : out_.ref();
      first_ = group_.start_reduce_scatter(out, in_);
      return;
    }
    case Collective::kSend:
    case Collective::kReceive: {
      const int distance = 1 + trial_.root % (size - 1);
      in_ = tensor(n);
      out_ = tensor(n);
      upload(memory_, in_, brought(rank, n));
      upload(memory_, out_, brought(rank, n));  // what comes must not be overwritten by what was there
      first_ = group_.start_send(in_, (rank + distance) % size);
      second_ = group_.start_receive(out_, (rank + size - distance) % size);
      return;
    }
  }
}

void RunningTrial::wait_and_check() {
  first_.wait();
  second_.wait();
  const bool inside = trial_.collective == Collective::kReduceScatter && !out_.ref();
  const std::int64_t n = trial_.elements;
  const TensorRef view = inside ? in_.ref().slice(0, group_.rank() * n, (group_.rank() + 1) * n) : out_.ref();
  const std::vector<std::byte> right = encode(trial_.dtype, expected());
  std::vector<std::byte> came(right.size());
  memory_.download(came.data(), view);
  const auto at = std::ranges::mismatch(right, came).in1 - right.begin();
  if (static_cast<std::size_t>(at) == right.size()) return;
  throw std::runtime_error(
      fmt::format("{} of {} {} (op {}, root {}{}{}) in a group of {}: rank {} has wrong bits in "
                  "element {}",
                  name_of(trial_.collective), n, name_of(trial_.dtype), static_cast<int>(trial_.op), trial_.root,
                  trial_.in_place ? ", in place" : "", trial_.fractions ? ", fractions" : "", group_.size(),
                  group_.rank(), at / size_of(trial_.dtype)));
}

void run_trial(Communicator& group, const std::vector<int>& members, Backend& memory, const Trial& trial) {
  RunningTrial(group, members, memory, trial).wait_and_check();
}

void run_all_trials(Communicator& group, const std::vector<int>& members, Backend& memory,
                    const std::vector<DType>& dtypes, const std::vector<std::int64_t>& counts) {
  std::uint32_t salt = 0;
  for (const DType dtype : dtypes) {
    for (const std::int64_t count : counts) {
      for (const bool in_place : {false, true}) {
        Trial trial{.dtype = dtype, .elements = count, .root = group.size() - 1, .in_place = in_place, .salt = ++salt};
        trial.collective = Collective::kAllGather;
        run_trial(group, members, memory, trial);
        trial.collective = Collective::kBroadcast;
        run_trial(group, members, memory, trial);
        trial.collective = Collective::kSend;
        if (group.size() > 1) run_trial(group, members, memory, trial);
        if (!is_number(dtype)) continue;
        const bool rounds = dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
        for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter}) {
          trial.collective = collective;
          for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
            if (op == ReduceOp::kMax && collective == Collective::kReduceScatter) continue;  // sums only
            trial.op = op;
            for (trial.fractions = false;; trial.fractions = true) {
              run_trial(group, members, memory, trial);
              if (trial.fractions || !rounds) break;
            }
            trial.fractions = false;
          }
        }
      }
    }
  }
}

namespace {

struct Group {
  std::unique_ptr<Communicator> communicator;
  std::vector<int> members;
};

Group split(Communicator& world, Backend& memory, int color, int key) {
  Group group{world.split(color, key), {}};
  group.communicator->attach(&memory);
  group.members = group.communicator->all_gather_host(world.rank());
  return group;
}

template <class Random>
Trial random_trial(Random& random, const Group& group, int smallest_size, int step) {
  static constexpr DType kDTypes[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16,
                                      DType::kI64, DType::kI32, DType::kU16,  DType::kU8};
  static constexpr std::int64_t kCounts[] = {0, 1, 2, 63, 64, 65, 127, 1009, 5003};
  static constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllGather,
                                                Collective::kReduceScatter, Collective::kBroadcast, Collective::kSend};
  Trial trial{.collective = kCollectives[random() % 5],
              .dtype = kDTypes[random() % 8],
              .elements = kCounts[random() % 9],
              .op = random() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax,
              .root = static_cast<int>(random() % static_cast<unsigned>(smallest_size)),
              .in_place = random() % 2 == 0,
              .salt = static_cast<std::uint32_t>(step)};
  if (trial.collective == Collective::kReduceScatter) trial.op = ReduceOp::kSum;
  const bool reduces = trial.collective == Collective::kAllReduce || trial.collective == Collective::kReduceScatter;
  if (reduces && !is_number(trial.dtype)) trial.dtype = DType::kBF16;
  if (trial.collective == Collective::kSend && group.members.size() == 1) trial.collective = Collective::kBroadcast;
  return trial;
}

}  // namespace

void run_random_program(Communicator& world, Backend& memory, std::uint32_t seed, int steps) {
  std::mt19937 random(seed);  // the same numbers on every rank, and every rank draws equally many
  const int rank = world.rank(), size = world.size();
  world.attach(&memory);
  std::vector<Group> groups;
  std::vector<int> smallest;
  groups.push_back(split(world, memory, 0, -rank));  // everyone, in reverse
  smallest.push_back(size);
  for (int n = 0; n < 3; ++n) {
    const int colors = 1 + static_cast<int>(random() % static_cast<unsigned>(size));
    groups.push_back(split(world, memory, rank % colors, static_cast<int>(random() % 7) * rank % 5));
    smallest.push_back(size / colors);
  }
  std::vector<std::unique_ptr<RunningTrial>> running;
  const auto finish_one = [&] {
    const auto which = running.begin() + static_cast<std::ptrdiff_t>(random() % running.size());
    (*which)->wait_and_check();
    running.erase(which);
  };
  for (int step = 0; step < steps; ++step) {
    const std::size_t n = random() % groups.size();
    const Trial trial = random_trial(random, groups[n], smallest[n], step);
    running.push_back(std::make_unique<RunningTrial>(*groups[n].communicator, groups[n].members, memory, trial));
    if (running.size() == 4 || random() % 2 == 0) finish_one();
    if (random() % 8 == 0) {
      double values[] = {static_cast<double>(rank), 1.0};
      world.all_reduce_host(values, ReduceOp::kMax);
      if (values[0] != size - 1) throw std::runtime_error("a host maximum is wrong");
    }
  }
  while (!running.empty()) finish_one();
}

void run_random_messages(Communicator& world, Backend& memory, std::uint32_t seed, int steps) {
  const std::unique_ptr<Communicator> forth = world.split(0, world.rank()), back = world.split(0, world.rank());
  forth->attach(&memory, Communicator::Uses::kMessagesToNext);
  back->attach(&memory, Communicator::Uses::kMessagesToPrevious);
  std::mt19937 random(seed);  // the same numbers on every rank
  const std::vector<int> members = forth->all_gather_host(world.rank());
  std::vector<std::unique_ptr<RunningTrial>> running;
  for (int step = 0; step < steps; ++step) {
    const bool is_forth = random() % 2 == 0;
    const Trial trial{.collective = Collective::kSend,
                      .dtype = random() % 2 == 0 ? DType::kBF16 : DType::kF32,
                      .elements = static_cast<std::int64_t>(1 + random() % 3000),
                      .root = is_forth ? 0 : world.size() - 2,
                      .salt = static_cast<std::uint32_t>(step)};
    running.push_back(std::make_unique<RunningTrial>(is_forth ? *forth : *back, members, memory, trial));
    if (running.size() < 4 && random() % 2 == 0) continue;
    const auto which = running.begin() + static_cast<std::ptrdiff_t>(random() % running.size());
    (*which)->wait_and_check();
    running.erase(which);
  }
  for (const auto& trial : running) trial->wait_and_check();
}

}  // namespace teratron::testing
