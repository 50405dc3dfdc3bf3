// Jinja's templates as chat templates use them (transformers' apply_chat_template). A template is read once and
// rendered with variables, byte for byte as jinja2 3.1 does in transformers' environment (immutable sandbox,
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

// Variables and functions of a rendering, and its bounds: beyond one it ends in an Error.
struct Context {
  const nlohmann::ordered_json& variables;        // an object
  std::map<std::string, Function> functions;      // beside Jinja's range, dict and namespace
  std::int64_t most_work = 1'000'000;             // turns of loops and calls of macros
  std::size_t most_bytes = std::size_t{1} << 31;  // that it makes, copies and compares, all together
  std::pair<std::string, std::string> marks{};    // around what {% generation %} blocks write
};

// Immutable, and safe to use from many threads at once.
class Template {
 public:
  // `source`: UTF-8. Error: a fault of syntax, with its line.
  explicit Template(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;

  // Error: an error of Jinja's, a feature that is not supported, or a bound. Exceptions of the context's functions pass
  // through.
  std::string render(const Context& context) const;
  // Whether it has {% generation %} blocks, by which transformers finds the assistant's words.
  bool has_generation() const;

 private:
  std::unique_ptr<const Tree> tree_;
};

}  // namespace teratron::jinja
