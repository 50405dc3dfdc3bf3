// State of a rendering: scopes, depth of calls, work done. Scopes are Jinja's: a turn of a loop, a macro, `with`, and a
// block that is assigned or filtered have their own; `if` has none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jinja/syntax/syntax.h"
#include "jinja/template.h"
#include "jinja/values/byte_budget.h"

namespace teratron::jinja {

struct Scope {
  std::shared_ptr<Scope> outer;
  std::map<std::string, Value, std::less<>> values;
};

class Renderer {
 public:
  explicit Renderer(const Context& context);
  // Empties scopes, namespaces and variables of loops: macros hold the scopes that hold them, so none would be freed.
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // The innermost variable of this name; Undefined: there is none. Error: a function of Jinja's that is not supported.
  Value value_of(const std::string& name) const;
  void set(const std::string& name, Value value) { scope_->values[name] = std::move(value); }
  void assign(const Target& target, const Value& value);
  Value make_namespace(Arguments& arguments);

  Flow run(const Body& body, std::string& out);
  // Runs a body in a scope of its own.
  Flow run_apart(const Body& body, std::string& out);
  // Error: calls are nested too deep.
  Value call(const Callable& function, Arguments& arguments);
  Value make_macro(const Macro& macro);
  // Makes the value that loop.changed() compares with.
  std::shared_ptr<Value> make_variable_of_loop();
  // Counts a turn of a loop or a call of a macro. Error: there are too many.
  void count_work();
  // The line of the statement that ran last.
  int line() const { return line_; }
  // The marks around the text of {% generation %} blocks.
  const std::pair<std::string, std::string>& marks() const { return context_.marks; }

  const std::shared_ptr<Scope>& scope() const { return scope_; }
  // A scope within the current one, or within another, while the object lives.
  class Within {
   public:
    explicit Within(Renderer& renderer) : Within(renderer, renderer.scope_) {}
    Within(Renderer& renderer, std::shared_ptr<Scope> outer) : renderer_(renderer), before_(renderer.scope_) {
      renderer.scope_ = std::make_shared<Scope>(Scope{std::move(outer), {}});
    }
    ~Within() { renderer_.scope_ = before_; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    Renderer& renderer_;
    std::shared_ptr<Scope> before_;
  };

 private:
  Value call_macro(const Macro& macro, const std::shared_ptr<Scope>& outer, Arguments& arguments);
  void bind(const Macro& macro, Arguments& arguments);
  // Error: nested calls have taken half of a thread's stack.
  void check_stack() const;

  const Context& context_;
  ByteBudget budget_;
  const char* const begin_of_stack_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::shared_ptr<Scope>> scopes_of_macros_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<Value>> variables_of_loops_;
  int calls_ = 0, line_ = 1;
  std::int64_t work_ = 0;
};

}  // namespace teratron::jinja
