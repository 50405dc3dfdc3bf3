#include "executor/stream_messages.h"

namespace teratron {

TensorRef StreamMessages::part_of(TensorRef stream) const {
  const std::int64_t ranks = is_shared_out_ ? 1 : mesh_.tensor->size(),
                     rank = is_shared_out_ ? 0 : mesh_.tensor->rank();
  const std::int64_t elements = stream.elements(), each = elements / ranks;
  check_equal(each * ranks, elements, "elements of a stream that tensor-parallel ranks divide");
  return stream.reshape({elements}).slice(0, rank * each, (rank + 1) * each);
}

Pending StreamMessages::send(Communicator& stages, TensorRef stream, int to) const {
  return stages.start_send(part_of(stream), to);
}

StreamMessages::Arriving StreamMessages::receive(Communicator& stages, TensorRef stream, int from) const {
  const TensorRef part = part_of(stream);
  return {stages.start_receive(part, from), *mesh_.tensor, stream, part};
}

void StreamMessages::Arriving::wait() {
  receive_.wait();
  if (tensor_ == nullptr || part_.elements() == stream_.elements()) return;
  tensor_->all_gather(stream_.reshape({stream_.elements()}), part_);
}

}  // namespace teratron
