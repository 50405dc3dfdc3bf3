// Options with a field of every type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "options/fields.h"

namespace teratron::fuzz {

struct Options {
  std::int64_t hidden_size = 0;
  double lr = 0.5;
  bool deterministic = false;
  std::string name;
  std::filesystem::path save, input;
  std::vector<std::filesystem::path> files;
  std::vector<std::int64_t> sizes;
  std::vector<double> weights;
  std::vector<std::string> words;
  enum class Style { kA, kB } style = Style::kA;
};

inline FieldList fields_of(Options& options) {
  FieldList list;
  list.group("Fuzzing");
  list.add("hidden-size", &options.hidden_size, "N", "a whole number").between(0, 1000);
  list.add("lr", &options.lr, "X", "a number").word = {"none", 0};
  list.add("deterministic", &options.deterministic, "", "a switch");
  list.add("name", &options.name, "TEXT", "a text");
  list.add("save", &options.save, "DIR", "a path").alias = "output";
  list.add("files", &options.files, "FILE", "paths");
  list.add("sizes", &options.sizes, "N", "whole numbers");
  list.add("weights", &options.weights, "X", "numbers");
  list.add("words", &options.words, "TEXT", "texts").repeats = true;
  list.add_choice("style", options.style, {{"a", Options::Style::kA}, {"b", Options::Style::kB}}, "a choice");
  list.add_positional(&options.input, "IN", "an input");
  return list;
}

}  // namespace teratron::fuzz
