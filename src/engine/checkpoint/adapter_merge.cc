#include <cstring>
#include <map>

#include "base/error.h"
#include "base/host/threads.h"
#include "checkpoint/adapter_base.h"
#include "checkpoint/adapter_files.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint_writer.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tensor_source.h"
#include "checkpoint/tokenizer_files.h"
#include "model/adapters.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Doubles = std::vector<double>;

Doubles values_of(const TensorSource& source, std::size_t tensor) {
  const DType dtype = *source.tensors()[tensor].dtype;
  std::vector<std::byte> bytes;
  source.pass_on(tensor, converting_sink(dtype, DType::kF64, appending_sink(bytes)));
  Doubles values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// weight[first row of the part + o, i] += scale * sum over r of b[o, r] a[r, i]
void add_product(Doubles& weight, const PlacedAdapter& adapter, const Doubles& a, const Doubles& b, double scale) {
  const std::int64_t rank = adapter.a.shape[0], inputs = adapter.a.shape[1], outputs = adapter.b.shape[0];
  parallel_for(outputs, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      double* const row = weight.data() + (adapter.part * outputs + o) * inputs;
      for (std::int64_t r = 0; r < rank; ++r) {
        const double factor = scale * b[static_cast<std::size_t>(o * rank + r)];
        const double* const from = a.data() + r * inputs;
        for (std::int64_t i = 0; i < inputs; ++i) row[i] += factor * from[i];
      }
    }
  });
}

}  // namespace

fs::path merge_adapters(const fs::path& adapters, const fs::path& root) {
  const WeightSource source = find_weights(adapters);
  if (!source.model.adapters.active()) {
    throw_user_error("'{}' holds a whole model, and no adapters to merge", source.folder.string());
  }
  check_takes_conversion(root, 0);
  require_base(source.folder, source.run.base);
  const std::unique_ptr<TensorSource> base = open_tensors_of(source.run.base.folder),
                                      own = open_tensors_of(source.folder);
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < own->tensors().size(); ++i) numbers[own->tensors()[i].name] = i;
  std::map<std::string, std::vector<PlacedAdapter>> beside;
  for (const PlacedAdapter& adapter : placed_adapters(source.model)) {
    for (const Parameter* parameter : {&adapter.a, &adapter.b}) {
      if (!numbers.contains(parameter->name)) {
        throw_user_error("'{}' lacks the adapter '{}' of its model", source.folder.string(), parameter->name);
      }
    }
    beside[adapter.weight.name].push_back(adapter);
  }
  std::vector<SafetensorsDeclaration> declarations;
  std::vector<std::size_t> tensors;
  for (std::size_t i = 0; i < base->tensors().size(); ++i) {
    const SourceTensor& tensor = base->tensors()[i];
    if (tensor.is_of_optimizer) continue;
    declarations.push_back({tensor.name, tensor.dtype == DType::kF64 ? DType::kF64 : DType::kF32, tensor.shape});
    tensors.push_back(i);
  }
  ModelConfig whole = source.model;
  whole.adapters = {};
  CheckpointWriter writer(root, {.kind = RunKind::kConversion, .task = {}}, whole, {});
  writer.write_tensors(tensor_file_name(TensorKind::kModel), declarations, [&](std::size_t i, const ByteSink& sink) {
    const DType from = *base->tensors()[tensors[i]].dtype, to = declarations[i].dtype;
    const auto found = beside.find(declarations[i].name);
    if (found == beside.end()) return base->pass_on(tensors[i], converting_sink(from, to, sink));
    Doubles weight = values_of(*base, tensors[i]);
    for (const PlacedAdapter& adapter : found->second) {
      add_product(weight, adapter, values_of(*own, numbers.at(adapter.a.name)),
                  values_of(*own, numbers.at(adapter.b.name)), source.model.adapters.scale());
    }
    stream(std::as_bytes(std::span(weight)), converting_sink(DType::kF64, to, sink));
  });
  for (const auto& [name, content] : find_tokenizer_files(source.folder)) writer.add_file(name, content);
  return writer.publish_as_only();
}

}  // namespace teratron
