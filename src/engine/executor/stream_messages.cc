#include "executor/stream_messages.h"

namespace teratron {

TensorRef StreamMessages::part_of(TensorRef stream) const {
  const std::int64_t elements = stream.elements(), ranks = mesh_.tensor->size();
  if (is_shared_out_ || elements % ranks != 0) return stream.reshape({elements});
  const std::int64_t rank = mesh_.tensor->rank(), each = elements / ranks;
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
