// Recomputation of a pipeline: the kind that each stage has (Recompute), in all of its layers and slices or in some.
// The first stages of 1F1B hold the most slices, so they need it most; what a stage keeps changes no bit of the result.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/transformer_layer.h"

namespace teratron {

const char* name_of(Recompute kind);  // "none", "selective", "full"

// The first layers of each of a stage's cells, in the first slices of each micro-batch. Last layers keep what they
// have, since their backward comes first, and so do late slices, whose attention takes the longest to make again.
struct StageRecompute {
  Recompute kind = Recompute::kNone;
  std::int64_t layers = 0;  // 0: all
  std::int64_t slices = 0;  // 0: all

  // The kind of a layer of a cell in a slice; both count from 0.
  Recompute of(std::int64_t layer, std::int64_t slice) const;
  // How many of a cell's layers a slice's backward makes again.
  std::int64_t layers_of(std::int64_t cell_layers, std::int64_t slice) const;
  bool is_whole() const { return kind != Recompute::kNone && layers == 0 && slices == 0; }
  std::string text() const;  // "full:3@2": three layers in two slices
  auto operator<=>(const StageRecompute&) const = default;
};

class Recomputation {
 public:
  Recomputation() = default;
  Recomputation(Recompute kind);  // NOLINT: a kind is that of all stages
  // One element is that of all stages.
  explicit Recomputation(std::vector<StageRecompute> stages);

  const StageRecompute& of(int stage) const;
  bool differs() const { return stages_.size() > 1; }          // between stages
  std::int64_t stages() const { return std::ssize(stages_); }  // where they differ
  // The kind of all layers in all slices of all stages; nothing: they differ.
  std::optional<Recompute> uniform() const;
  std::string text() const;  // as parse_recompute() reads it
  auto operator<=>(const Recomputation&) const = default;

 private:
  std::vector<StageRecompute> stages_;  // not all alike; one: all stages are; none: nothing is made again
};

// Elements of "full:3,selective@2,none": kinds, of so many layers and slices. Nothing: the text is no such list.
std::optional<std::vector<StageRecompute>> parse_recompute(std::string_view text);

}  // namespace teratron
