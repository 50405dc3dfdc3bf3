// Templates as syntax trees (jinja.palletsprojects.com, Template Designer Documentation), with the tags break, continue
// and generation that transformers adds. Blocks of other templates (block, extends, include, import) and recursive
// loops are refused.
#pragma once

#include <string_view>

#include "jinja/syntax/syntax.h"

namespace teratron::jinja {

struct Tree {
  Body body;
  bool has_generation = false;
};

// Error: a fault of syntax; an unknown tag, filter or test; expressions nested too deep.
Tree parse(std::string_view source);

}  // namespace teratron::jinja
