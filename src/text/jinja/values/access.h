// Attributes, items and methods of values, as Jinja's sandbox finds them.
#pragma once

#include <string>

#include "jinja/values/value.h"

namespace teratron::jinja {

// `value.name`: an attribute, else an item. Undefined where there is none. Error: `value` is Undefined; an attribute
// of Python that is not supported, or unsafe.
Value attribute_of(const Value& value, const std::string& name);
// `value[key]`: an item, else an attribute.
Value item_of(const Value& value, const Value& key);
// `value[begin:end:step]`; None: left out. Error: `value` is no text, list, tuple or range.
Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step);
// The attribute that a filter's argument names, such as "message.content" or 0; None: the value itself. Each part that
// is Undefined is `other`, if there is one.
Value path_of(const Value& value, const Value& path, const Value* other = nullptr);

}  // namespace teratron::jinja
