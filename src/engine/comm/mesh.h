// Mesh: the groups one rank belongs to, in the order of rank_coordinates.h. Passed down, never global.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/rank_coordinates.h"

namespace teratron {

struct Mesh {
  std::unique_ptr<Communicator> tensor, pipeline, data;
  std::unique_ptr<Communicator> model;  // the ranks that hold one copy of the model: tensor x pipeline
  // A second group of the stages, for gradients, which therefore never queue after activations.
  std::unique_ptr<Communicator> pipeline_back;
  // The first and the last stage, which both hold the tied embedding where the model ends on the last; a stage between
  // them is alone.
  std::unique_ptr<Communicator> ends;

  MeshShape shape() const { return {tensor->size(), pipeline->size(), data->size()}; }
  RankCoordinates coordinates() const {
    return {.tensor = {tensor->rank(), tensor->size()},
            .pipeline = {pipeline->rank(), pipeline->size()},
            .data = {data->rank(), data->size()}};
  }
  // To every group. vocabulary_parallel: the ranks of a copy of the model sum and broadcast tensors, too.
  void attach(Allocator* memory, bool vocabulary_parallel = false);
};

Mesh make_single_rank_mesh();

// Every rank of `world` calls it. InternalError where shape.ranks() is not world.size().
Mesh make_mesh(Communicator& world, const MeshShape& shape);

}  // namespace teratron
