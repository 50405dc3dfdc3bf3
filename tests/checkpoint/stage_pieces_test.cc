// A tensor of another stage of a pipeline reaches the first one whole, whatever its size.
#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "checkpoint/tensor_parts.h"
#include "comm/launch.h"
#include "comm/mesh.h"

namespace teratron::testing {
namespace {

// Bytes that stage 0 receives of a parameter of `shape` on stage 1, split over its tensor-parallel ranks, and those
// that the stage gathers for itself.
std::pair<std::vector<std::byte>, std::vector<std::byte>> received_and_gathered(const Shape& shape, int tensor_ranks) {
  std::vector<std::byte> received, gathered;
  const auto append_to = [](std::vector<std::byte>& all) {
    return [&all](std::span<const std::byte> piece) { all.insert(all.end(), piece.begin(), piece.end()); };
  };
  const MeshShape layout{.tensor = tensor_ranks, .pipeline = 2};
  run_ranks({}, layout.ranks(), [&](Communicator& world) {
    const Mesh mesh = make_mesh(world, layout);
    const auto backend = make_cpu_backend();
    Parameter parameter{.name = "p", .shape = shape, .split = {.axis = 0}, .stage = 1};
    parameter.group = {.rank = mesh.tensor->rank(), .size = tensor_ranks};
    parameter.padding_rows = 3;
    if (mesh.pipeline->rank() == 1) {
      const Tensor part(*backend, DType::kF32, shape);
      std::vector<float> values(static_cast<std::size_t>(shape.elements()));
      RandomSequence random(RandomStream{.seed = static_cast<std::uint64_t>(mesh.tensor->rank())});
      for (float& value : values) value = static_cast<float>(random.below(1 << 20));
      backend->upload(part, values.data());
      const ByteSink send =
          mesh.tensor->rank() == 0 ? sending_pieces(parameter, DType::kF32, *backend, *mesh.pipeline) : ByteSink();
      gather_tensor(parameter, part, *backend, *mesh.tensor, send);
      gather_tensor(parameter, part, *backend, *mesh.tensor, append_to(gathered));
    } else if (mesh.tensor->rank() == 0) {
      receive_pieces(parameter, DType::kF32, *backend, *mesh.pipeline, append_to(received));
    }
  });
  return {received, gathered};
}

TEST(StagePieces, AreWholeWhateverTheirSize) {
  // Pieces are of 4 MiB: one short one, whole ones and a rest, and rows longer than a piece.
  for (const Shape& shape : {Shape{7}, Shape{5, 3}, Shape{1024, 2048}, Shape{1500, 1001}, Shape{5, 1100000}}) {
    for (const int tensor_ranks : {1, 2}) {
      const auto [received, gathered] = received_and_gathered(shape, tensor_ranks);
      const std::int64_t columns = shape.rank() == 1 ? 1 : shape[1];
      EXPECT_EQ(static_cast<std::int64_t>(received.size()), (shape[0] * tensor_ranks - 3) * columns * 4);
      EXPECT_TRUE(received == gathered) << shape[0] << " x " << columns << " on " << tensor_ranks;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
