#include "comm/mesh.h"

#include "base/error.h"

namespace teratron {

void Mesh::attach(Allocator* memory, bool vocabulary_parallel) {
  using Uses = Communicator::Uses;
  for (const auto& group : {&tensor, &data, &ends}) (*group)->attach(memory, Uses::kCollectives);
  pipeline->attach(memory, Uses::kMessagesToNext);
  pipeline_back->attach(memory, Uses::kMessagesToPrevious);
  model->attach(memory, vocabulary_parallel ? Uses::kCollectives : Uses::kHostExchanges);
}

Mesh make_single_rank_mesh() {
  return {.tensor = make_self_communicator(),
          .pipeline = make_self_communicator(),
          .data = make_self_communicator(),
          .model = make_self_communicator(),
          .pipeline_back = make_self_communicator(),
          .ends = make_self_communicator()};
}

Mesh make_mesh(Communicator& world, const MeshShape& shape) {
  check_equal(world.size(), shape.ranks(), "ranks of the world and of the mesh");
  const int rank = world.rank();
  const RankCoordinates coordinates = rank_coordinates(shape, rank);
  const int tensor = coordinates.tensor.rank, stage = coordinates.pipeline.rank, replica = coordinates.data.rank;
  const bool at_an_end = stage == 0 || stage + 1 == shape.pipeline;
  return {.tensor = world.split(replica * shape.pipeline + stage, tensor),
          .pipeline = world.split(replica * shape.tensor + tensor, stage),
          .data = world.split(stage * shape.tensor + tensor, replica),
          .model = world.split(replica, rank),
          .pipeline_back = world.split(replica * shape.tensor + tensor, stage),
          // Groups of the ends, then one for every rank between them.
          .ends = world.split(at_an_end ? replica * shape.tensor + tensor : world.size() + rank, stage)};
}

}  // namespace teratron
