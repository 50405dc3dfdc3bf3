// Options of every type, for the tests of reading.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "options/reading.h"

namespace teratron::testing::every_type {

enum class Colour { kRed, kGreen };

// Options with a field of every type.
struct Options {
  std::int64_t count = 1;
  double rate = 0.5, width = 1;
  std::vector<double> rates;
  bool loud = false;
  std::string name = "none";
  std::filesystem::path file, config;
  std::vector<std::filesystem::path> inputs;
  std::vector<std::string> words;
  std::vector<std::string> texts;
  Colour colour = Colour::kRed;
};

inline FieldList fields_of(Options& o) {
  FieldList list;
  list.add("count", &o.count, "N", "a count").between(-7, 9).alias = "n";
  list.add("rate", &o.rate, "X", "a rate");
  list.add("width", &o.width, "X", "a width").word = {"auto", std::numeric_limits<double>::infinity()};
  list.add("rates", &o.rates, "X", "rates");
  list.add("loud-voice", &o.loud, "", "a switch");
  list.add("name", &o.name, "TEXT", "a text");
  list.add("file", &o.file, "FILE", "a path");
  list.add("inputs", &o.inputs, "FILE", "paths");
  list.add("words", &o.words, "WORD", "words");
  list.add("text", &o.texts, "TEXT", "texts").repeats = true;
  list.add_choice("colour", o.colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}}, "a colour");
  list.add("config", &o.config, "FILE", "a file of these").role = FieldRole::kConfigFile;
  return list;
}

struct Reading {
  Options options;
  FaultLines faults;
};

inline Reading read(const std::vector<std::string>& arguments) {
  Reading reading;
  FieldList fields = fields_of(reading.options);
  reading.faults = read_fields(fields, arguments);
  return reading;
}

inline std::string message_of(const FaultLines& faults) {
  try {
    throw_if_any(faults);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace teratron::testing::every_type
