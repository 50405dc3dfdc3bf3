#include "jinja/renderer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "jinja/values/arguments.h"

namespace teratron::jinja {
namespace {

constexpr int kMostCalls = 100;                  // nested calls of macros
constexpr std::int64_t kLongestRange = 100'000;  // the sandbox's
// Bytes of the stack, usually of 8 MiB, before the last call; an expression of 1000 parts takes less than the rest.
constexpr std::ptrdiff_t kMostStack = 4 << 20;

Value range(Arguments& arguments) {
  if (!arguments.named.empty()) fail("range() takes no keyword arguments");
  const Bound bound("range", arguments, {"start", "stop", "step"});
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (!bound[i].is_integer()) fail("'{}' object cannot be interpreted as an integer", type_name(bound[i]));
  }
  const bool has_start = bound.has(1);
  const std::int64_t start = has_start ? bound[0].integer() : 0, stop = bound[has_start ? 1 : 0].integer();
  const std::int64_t step = bound.integer_or(2, 1);
  if (step == 0) fail("range() arg 3 must not be zero");
  Values items;
  for (__int128 at = start; step > 0 ? at < stop : at > stop; at += step) {
    if (std::ssize(items) == kLongestRange)
      fail("Range too big. The sandbox blocks ranges larger than {}", kLongestRange);
    items.emplace_back(static_cast<std::int64_t>(at));
  }
  return Value::list(std::move(items), Sequence::Kind::kRange, "range");
}

Value make_dictionary(Arguments& arguments) {
  Dictionary made;
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument, got {}", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Dictionary* given = arguments.positional[0].dictionary();
    if (given == nullptr) fail("dict() of a {} is not supported", type_name(arguments.positional[0]));
    made.items = given->items;
  }
  for (auto& [name, value] : arguments.named) made.set(Value::text(name), std::move(value));
  return Value::dictionary(std::move(made));
}

// Refuses what transformers' namespaces refuse.
void check_name_of_attribute(const std::string& name) {
  if (name.starts_with('_')) fail("a namespace may not have an attribute '{}', which begins with _", name);
}

}  // namespace

Renderer::Renderer(const Context& context)
    : context_(context),
      budget_(context.most_bytes),
      begin_of_stack_(static_cast<const char*>(__builtin_frame_address(0))),
      scope_(std::make_shared<Scope>()) {
  auto& values = scope_->values;
  values["range"] = Value::function("range", range);
  values["dict"] = Value::function("dict", make_dictionary);
  values["namespace"] =
      Value::function("namespace", [this](Arguments& arguments) { return make_namespace(arguments); });
  for (const auto& [name, function] : context.functions) values[name] = Value::function(name, function);
  for (const auto& [name, value] : context.variables.items()) values[name] = from_json(value);
}

Renderer::~Renderer() {
  for (const auto& space : namespaces_) space->attributes.clear();
  for (const auto& variable : variables_of_loops_) *variable = {};
  for (const auto& scope : scopes_of_macros_) {
    for (Scope* at = scope.get(); at != nullptr; at = at->outer.get()) at->values.clear();
  }
}

Value Renderer::value_of(const std::string& name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->outer.get()) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return found->second;
  }
  constexpr std::array<std::string_view, 4> kOthers = {"cycler", "joiner", "lipsum", "self"};
  if (std::ranges::find(kOthers, name) != kOthers.end()) fail("'{}' of Jinja is not supported", name);
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Renderer::make_namespace(Arguments& arguments) {
  auto space = std::make_shared<Namespace>();
  for (const Value& given : arguments.positional) {
    if (given.dictionary() == nullptr) fail("namespace() of a {} is not supported", type_name(given));
    for (const auto& [key, value] : given.dictionary()->items) {
      if (key.text() == nullptr) fail("a namespace has a name that is a {}", type_name(key));
      check_name_of_attribute(key.text()->bytes);
      space->attributes[key.text()->bytes] = value;
    }
  }
  for (auto& [name, value] : arguments.named) {
    check_name_of_attribute(name);
    space->attributes[name] = std::move(value);
  }
  namespaces_.push_back(space);
  return space;
}

void Renderer::assign(const Target& target, const Value& value) {
  if (!target.several.empty()) {
    const Values values = elements(value);
    if (values.size() != target.several.size()) {
      fail("{} values to unpack (expected {})", values.size() < target.several.size() ? "not enough" : "too many",
           target.several.size());
    }
    for (std::size_t i = 0; i < values.size(); ++i) assign(target.several[i], values[i]);
    return;
  }
  if (target.attribute.empty()) return set(target.name, value);
  const Value held = value_of(target.name);
  Namespace* space = held.name_space();
  if (space == nullptr) fail("cannot assign attribute on non-namespace object");
  check_name_of_attribute(target.attribute);
  space->attributes[target.attribute] = value;
}

void Renderer::count_work() {
  if (++work_ > context_.most_work)
    fail("the template takes more than {} turns of loops and calls", context_.most_work);
}

Flow Renderer::run(const Body& body, std::string& out) {
  for (const StatementPtr& statement : body) {
    if (statement->line > 0) line_ = statement->line;
    const Flow flow = statement->run(*this, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Flow Renderer::run_apart(const Body& body, std::string& out) {
  const Within within(*this);
  return run(body, out);
}

std::shared_ptr<Value> Renderer::make_variable_of_loop() {
  return variables_of_loops_.emplace_back(std::make_shared<Value>());
}

void Renderer::check_stack() const {
  const char* const here = static_cast<const char*>(__builtin_frame_address(0));
  if (std::abs(here - begin_of_stack_) > kMostStack) fail("macros and filters call each other too deep");
}

Value Renderer::call(const Callable& function, Arguments& arguments) {
  check_stack();
  if (++calls_ > kMostCalls) fail("macros call each other more than {} deep", kMostCalls);
  Value result = function.call(arguments);
  --calls_;
  return result;
}

Value Renderer::make_macro(const Macro& macro) {
  scopes_of_macros_.push_back(scope_);
  return Value::function(
      macro.name, [this, &macro, outer = scope_](Arguments& arguments) { return call_macro(macro, outer, arguments); });
}

void Renderer::bind(const Macro& macro, Arguments& arguments) {
  const Parameters& parameters = macro.parameters;
  if (arguments.positional.size() > parameters.names.size()) {
    fail("macro '{}' takes not more than {} argument(s)", macro.name, parameters.names.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) set(parameters.names[i], arguments.positional[i]);
  std::vector<std::string> named;
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::ranges::find(parameters.names, name);
    const auto place = static_cast<std::size_t>(at - parameters.names.begin());
    const bool is_caller = name == "caller" && macro.uses_caller;
    if (at != parameters.names.end() && place < arguments.positional.size()) {
      fail("macro '{}' got multiple values for argument '{}'", macro.name, name);
    }
    if (at == parameters.names.end() && !is_caller) {
      fail("macro '{}' takes no keyword argument '{}'", macro.name, name);
    }
    set(name, value);
    named.push_back(name);
  }
  if (macro.uses_caller && std::ranges::find(named, "caller") == named.end()) {
    set("caller", Value::undefined("No caller defined"));
  }
  std::vector<std::size_t> unbound;
  for (std::size_t i = arguments.positional.size(); i < parameters.names.size(); ++i) {
    const std::string& name = parameters.names[i];
    if (std::ranges::find(named, name) != named.end()) continue;
    set(name, Value::undefined(fmt::format("parameter '{}' was not provided", name)));
    unbound.push_back(i);
  }
  // All are set by now: a default sees no outer variable that has the name of a parameter.
  for (const std::size_t i : unbound) {
    if (parameters.defaults[i] != nullptr) set(parameters.names[i], parameters.defaults[i]->evaluate(*this));
  }
}

Value Renderer::call_macro(const Macro& macro, const std::shared_ptr<Scope>& outer, Arguments& arguments) {
  count_work();
  const Within within(*this, outer);
  bind(macro, arguments);
  std::string out;
  run(macro.body, out);
  return Value::text(std::move(out));
}

}  // namespace teratron::jinja
