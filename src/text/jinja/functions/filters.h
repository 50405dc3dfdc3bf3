// Filters (jinja.palletsprojects.com, List of Built-in Filters) and transformers' tojson.
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace teratron::jinja {

class Renderer;

// The first of the arguments is what is filtered.
using Filter = Value (*)(Renderer& renderer, Arguments& arguments);
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
// Null: there is none of this name.
Filter find_filter(std::string_view name);

// Those of lists (sequence_filters.cc); null: there is none.
Filter find_sequence_filter(std::string_view name);

// Arguments of a call by the names of its parameters. Error: too many, unknown or missing ones.
class Bound {
 public:
  Bound(std::string_view function, Arguments& arguments, std::initializer_list<std::string_view> names,
        std::size_t required = 1);
  bool has(std::size_t i) const { return given_[i]; }
  const Value& operator[](std::size_t i) const { return values_[i]; }
  // The other value, where the argument is not there or None.
  std::int64_t integer_or(std::size_t i, std::int64_t other) const;
  bool flag_or(std::size_t i, bool other) const { return given_[i] ? is_true(values_[i]) : other; }

 private:
  std::string_view function_;
  Values values_;
  std::vector<bool> given_;
};

}  // namespace teratron::jinja
