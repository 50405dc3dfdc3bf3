// The whole weights of a model (the masters, where there are some) or their gradients, put together from the parts of
// thread ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/tensor_parts.h"
#include "executor/executor.h"
#include "nn/parameter_state.h"

namespace teratron::testing {

class WholeWeights {
 public:
  // Every rank calls it. Where frozen weights lie in tiles, of the others alone.
  void add(Executor& executor) {
    add(executor, [&](const Parameter& parameter) {
      return whole_weights(executor.backend(), parameter, *executor.mesh().data);
    });
  }
  // The gradients instead; of an optimizer that is not sharded.
  void add_gradients(Executor& executor) {
    add(executor, [](const Parameter& parameter) { return parameter.gradient; });
  }
  // After all ranks have.
  const std::map<std::string, std::vector<double>>& by_name() const { return by_name_; }
  // One parameter after the other, by name.
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& [name, values] : by_name_) all.insert(all.end(), values.begin(), values.end());
    return all;
  }

 private:
  void add(Executor& executor, const std::function<TensorRef(const Parameter&)>& part_of) {
    Mesh& mesh = executor.mesh();
    std::vector<Parameter*> parameters = executor.parameters();
    if (executor.options().weight_tiles) std::erase_if(parameters, [](const Parameter* p) { return p->frozen; });
    for (const Parameter* parameter : parameters) {
      const TensorRef part = part_of(*parameter);
      if (mesh.data->rank() != 0) continue;
      std::vector<double> values;
      gather_tensor(
          *parameter, part, executor.backend(), group_of(*parameter, mesh), [&](std::span<const std::byte> bytes) {
            const std::size_t count = bytes.size() / static_cast<std::size_t>(size_of(part.dtype)), old = values.size();
            std::vector<std::byte> doubles(count * sizeof(double));
            convert_floats(doubles, DType::kF64, bytes, part.dtype);
            values.resize(old + count);
            std::memcpy(values.data() + old, doubles.data(), doubles.size());
          });
      if (group_of(*parameter, mesh).rank() == 0) keep(parameter->name, std::move(values));
    }
  }
  void keep(const std::string& name, std::vector<double> values) {
    const std::lock_guard lock(mutex_);
    const auto [there, is_new] = by_name_.emplace(name, values);
    if (!is_new) {
      EXPECT_EQ(there->second, values) << name << " differs between the ends of the pipeline";
    }
  }
  std::mutex mutex_;
  std::map<std::string, std::vector<double>> by_name_;
};

}  // namespace teratron::testing
