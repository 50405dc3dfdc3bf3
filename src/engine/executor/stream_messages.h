// Messages between pipeline stages: the residual stream of a slice, or its gradient. Without sequence parallelism every
// tensor-parallel rank of a stage holds the same whole stream. Each rank then sends 1/t of it, and the ranks that
// receive gather the parts among themselves, so a stream crosses the network between two hosts once (Narayanan et al.,
// arXiv 2104.04473, section 4.1: scatter/gather). With sequence parallelism a rank's stream is 1/t already. Streams
// that t does not divide, as of slices of an odd length, are sent whole by every rank.
#pragma once

#include "comm/mesh.h"

namespace teratron {

class StreamMessages {
 public:
  // `is_shared_out`: every tensor-parallel rank has its own rows of the stream (sequence parallelism). The mesh must
  // outlive this.
  StreamMessages(Mesh& mesh, bool is_shared_out) : mesh_(mesh), is_shared_out_(is_shared_out) {}

  // A stream that is on its way.
  class [[nodiscard]] Arriving {
   public:
    Arriving() = default;  // nothing to wait for
    Arriving(Pending receive, Communicator& tensor, TensorRef stream, TensorRef part)
        : receive_(std::move(receive)), tensor_(&tensor), stream_(stream), part_(part) {}
    // Afterwards the view that receive() was given holds this rank's stream. All ranks of a tensor-parallel group wait
    // for their messages in the same order.
    void wait();

   private:
    Pending receive_;
    Communicator* tensor_ = nullptr;
    TensorRef stream_, part_;
  };

  // `stages`: mesh.pipeline for activations, mesh.pipeline_back for gradients. `stream` is contiguous, [.., hidden].
  Pending send(Communicator& stages, TensorRef stream, int to) const;
  Arriving receive(Communicator& stages, TensorRef stream, int from) const;

 private:
  TensorRef part_of(TensorRef stream) const;  // that this rank sends and receives

  Mesh& mesh_;
  bool is_shared_out_;
};

}  // namespace teratron
