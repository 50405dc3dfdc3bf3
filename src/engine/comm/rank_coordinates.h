// RankCoordinates: a rank's position in a mesh, as plain values. Plans made from them need no other rank and no
// communicator.
#pragma once

namespace teratron {

struct MeshShape {
  int tensor = 1, pipeline = 1, data = 1;
  int ranks() const { return tensor * pipeline * data; }
  bool operator==(const MeshShape&) const = default;
};

// A rank within one of its groups, and how many ranks that group has.
struct GroupRank {
  int rank = 0, size = 1;
  bool operator==(const GroupRank&) const = default;
};

// A rank within its tensor-parallel group, its pipeline (the stage) and the copies of the model.
struct RankCoordinates {
  GroupRank tensor, pipeline, data;
  bool operator==(const RankCoordinates&) const = default;
};

// Tensor-parallel ranks lie innermost, copies of the model outermost (Megatron-LM, Appendix B.1):
//   world rank = (copy * stages + stage) * tensor ranks + tensor rank
constexpr RankCoordinates rank_coordinates(const MeshShape& shape, int world_rank) {
  return {.tensor = {world_rank % shape.tensor, shape.tensor},
          .pipeline = {world_rank / shape.tensor % shape.pipeline, shape.pipeline},
          .data = {world_rank / (shape.tensor * shape.pipeline), shape.data}};
}

}  // namespace teratron
