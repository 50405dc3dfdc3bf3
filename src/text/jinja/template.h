// Jinja's templates as chat templates use them (transformers' apply_chat_template): a template once read, and the text
// that it makes of variables, byte for byte as jinja2 3.1 makes it in transformers' environment (immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls). Features that are not here are refused by name.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "jinja/values/value.h"

namespace teratron::jinja {

struct Tree;

// The variables that a template is given.
struct Context {
  const nlohmann::ordered_json& variables;      // an object
  std::map<std::string, Function> functions;    // beside Jinja's range, dict and namespace
  std::int64_t most_work = 1'000'000;           // turns of loops and calls of macros
  std::pair<std::string, std::string> marks{};  // around what {% generation %} blocks write
};

// Immutable, and safe to use from many threads at once.
class Template {
 public:
  // `source`: UTF-8. Error says what is wrong in which line.
  explicit Template(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;

  // Error: what Jinja calls an error, or what is not supported. Exceptions of a function of the context pass through.
  std::string render(const Context& context) const;
  // Whether it has {% generation %} blocks, which transformers adds to find the assistant's words.
  bool has_generation() const;

 private:
  std::unique_ptr<const Tree> tree_;
};

}  // namespace teratron::jinja
