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

}  // namespace teratron::jinja
