// Filters (jinja.palletsprojects.com, List of Built-in Filters) and transformers' tojson.
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace teratron::jinja {

class Renderer;

// The first argument is the filtered value.
using Filter = Value (*)(Renderer& renderer, Arguments& arguments);
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
// The filter of this name; null: there is none.
Filter find_filter(std::string_view name);
// Whether Jinja has a filter of this name that we have not.
bool is_unsupported_filter(std::string_view name);

// The filter of lists of this name (sequence_filters.cc); null: there is none.
Filter find_sequence_filter(std::string_view name);

}  // namespace teratron::jinja
