#include "nn/adapter.h"

namespace teratron {

Adapter::Adapter(const std::string& layer, const Parameter& weight, const LayerAdapters::Part& part,
                 const AdapterConfig& config, GroupRank group, bool of_all, bool after_activation)
    : first_output(part.number * (weight.shape[0] / part.count)),
      scale(config.scale()),
      dropout(config.dropout),
      of_all_tokens(of_all),
      follows_activation(after_activation) {
  const std::string name = layer + (part.name.empty() ? "" : "." + part.name);
  const bool cuts_inputs = weight.split.axis == 1;
  const Parameter whole{.decay = true, .adapter = true, .group = group, .sum = GradientSum::kOverRanks};
  a = b = whole;
  if (weight.is_split()) {
    Parameter& cut = cuts_inputs ? a : b;
    cut.sum = GradientSum::kNone;
    cut.split = {.axis = weight.split.axis, .blocks = cuts_inputs ? 1 : weight.split.blocks / part.count};
    cut.group = weight.group;
    cut.replicas = weight.replicas;
    cut.replica = weight.replica;
  }
  a.name = name + ".lora_a";
  a.shape = {config.rank, weight.shape[1]};
  a.init = Init::kUniform;
  // PEFT's: kaiming_uniform_ with a slope of sqrt(5).
  a.init_scale = 1 / std::sqrt(static_cast<double>(weight.global_shape()[1]));
  b.name = name + ".lora_b";
  b.shape = {weight.shape[0] / part.count, config.rank};
}

Adapter::Memory Adapter::carve(std::int64_t rows, DType compute, Carver& carver) const {
  const auto take = [&](std::int64_t columns) { return carver.take(compute, {rows, columns}); };
  Memory memory;
  memory.low = take(a.shape[0]);
  memory.scaled = carver.take(compute, {kMostInLayer, rows, a.shape[0]});
  memory.gradient = carver.take(compute, {kMostInLayer, rows, a.shape[0]});
  memory.part = take(outputs());
  memory.sum = take(outputs());
  memory.in = take(inputs());
  if (!follows_activation) return memory;
  memory.activated = take(inputs());
  memory.dgate = take(inputs());
  return memory;
}

Adapter::Memory Adapter::memory(const LayerPass& pass) const {
  Carver carver(pass.adapters.data);
  const CallSizes sizes = pass.sizes();
  const Memory memory = carve(sizes.rows(), sizes.compute, carver);
  check(pass.adapters && carver.bytes() <= pass.adapters.bytes(), "adapters have the memory that was planned");
  return memory;
}

void Adapter::mask(const LayerPass& pass, TensorRef to, TensorRef from) const {
  Dropout mask = pass.dropout(dropout, RandomPurpose::kResidualDropout, stream);
  if (!a.is_split() || a.group.size == 1) {
    const Shape shape{pass.batch, pass.tokens, inputs()};
    return pass.backend.dropout_backward({.dbranch = to.reshape(shape), .dsum = from.reshape(shape), .dropout = mask});
  }
  // A row of the whole input is a run of columns for each rank. The mask treats it as a sample with a token for each.
  check(!mask.counters, "the first sample is not read from memory");
  const std::int64_t first = mask.first_position, length = mask.sequence_length;
  mask.sequence_length = a.group.size;
  mask.first_position = a.group.rank;
  for (std::int64_t sequence = 0; sequence < pass.batch; ++sequence) {
    mask.first_sample = (pass.first_sample + sequence) * length + first;
    const auto rows = [&](TensorRef all) {
      return all.flatten_rows()
          .slice(0, sequence * pass.tokens, (sequence + 1) * pass.tokens)
          .reshape({pass.tokens, 1, inputs()});
    };
    pass.backend.dropout_backward({.dbranch = rows(to), .dsum = rows(from), .dropout = mask});
  }
}

TensorRef Adapter::dropped(const LayerPass& pass, TensorRef x, const Memory& memory) const {
  if (!drops(pass)) return x;
  mask(pass, memory.in, x);
  return memory.in;
}

TensorRef Adapter::reduce(const LayerPass& pass, TensorRef input, const Memory& memory) const {
  weights(a).forward(pass, memory.low, input);
  pass.backend.scale_add(own(memory.scaled), 0, memory.low, scale);
  return own(memory.scaled);
}

TensorRef Adapter::part_gradient(const LayerPass& pass, TensorRef dy, const Memory& memory) const {
  if (is_whole(dy)) return dy.flatten_rows();
  pass.backend.copy(memory.part, part_of(dy));
  return memory.part;
}

TensorRef Adapter::reduce_gradient(const LayerPass& pass, TensorRef part, const Memory& memory) const {
  weights(b).backward_input(pass, memory.low, part);
  pass.backend.scale_add(own(memory.gradient), 0, memory.low, scale);
  return own(memory.gradient);
}

LowRankProduct Adapter::addend(const LayerPass& pass, TensorRef x) const {
  const Memory memory = this->memory(pass);
  return {.rows = reduce(pass, dropped(pass, x, memory), memory), .weight = b.value, .first_output = first_output};
}

LowRankProduct Adapter::input_addend(const LayerPass& pass, TensorRef dy) const {
  const Memory memory = this->memory(pass);
  return {.rows = reduce_gradient(pass, part_gradient(pass, dy, memory), memory), .weight = a.value};
}

void Adapter::forward(const LayerPass& pass, TensorRef y, TensorRef x, const LinearEpilogue& epilogue) const {
  const Memory memory = this->memory(pass);
  const TensorRef scaled = reduce(pass, dropped(pass, x, memory), memory);
  if (epilogue.gate) {
    weights(b).forward(pass, memory.part, scaled,
                       {.activation = epilogue.activation, .activated = memory.sum, .gate = epilogue.gate});
    pass.backend.add(epilogue.activated.flatten_rows(), memory.sum);
  } else {
    weights(b).forward(pass, memory.part, scaled);
  }
  if (is_whole(y)) return pass.backend.add(y.flatten_rows(), memory.part);
  pass.backend.copy(memory.sum, part_of(y));
  pass.backend.add(memory.sum, memory.part);
  pass.backend.copy(part_of(y), memory.sum);
}

Adapter::InputShare Adapter::input_share(const LayerPass& pass, TensorRef dy,
                                         const LinearInputEpilogue& epilogue) const {
  const Memory memory = this->memory(pass);
  const TensorRef gradient = reduce_gradient(pass, part_gradient(pass, dy, memory), memory);
  LinearInputEpilogue share = epilogue;
  if (epilogue.activated) share.activated = memory.activated;
  if (epilogue.gate) share.dgate = memory.dgate;
  weights(a).backward_input(pass, memory.in, gradient, share);
  if (drops(pass)) {
    mask(pass, memory.in, memory.in);
    if (share.dgate) mask(pass, share.dgate, share.dgate);
  }
  return {.dx = memory.in, .dgate = share.dgate};
}

void Adapter::backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x, bool alone) const {
  if (pass.weights_later) return;
  const Memory memory = this->memory(pass);
  const TensorRef input = dropped(pass, x, memory), part = part_gradient(pass, dy, memory);
  const TensorRef gradient = alone ? reduce_gradient(pass, part, memory) : own(memory.gradient);
  weights(a).backward_weight(pass, gradient, input);
  weights(b).backward_weight(pass, part, reduce(pass, input, memory));
}

}  // namespace teratron
