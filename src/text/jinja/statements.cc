#include "jinja/renderer.h"
#include "jinja/values/printing.h"

namespace teratron::jinja {
namespace {

Value through_filters(const std::vector<std::unique_ptr<const FilterCall>>& filters, std::string text,
                      Renderer& renderer) {
  Value value = Value::text(std::move(text));
  for (const auto& filter : filters) value = filter->filtered(renderer, std::move(value));
  return value;
}

}  // namespace

Flow TextOutput::run(Renderer& /*renderer*/, std::string& out) const {
  append(out, text);
  return Flow::kNext;
}

Flow Output::run(Renderer& renderer, std::string& out) const {
  append_text_of(value->evaluate(renderer), out);
  return Flow::kNext;
}

Flow If::run(Renderer& renderer, std::string& out) const {
  for (const auto& [test, body] : branches) {
    if (test == nullptr || is_true(test->evaluate(renderer))) return renderer.run(body, out);
  }
  return Flow::kNext;
}

Flow Jump::run(Renderer& /*renderer*/, std::string& /*out*/) const { return flow; }

Flow For::run(Renderer& renderer, std::string& out) const {
  const auto all = std::make_shared<LoopItems>(LoopItems{.source = iterator_of(items->evaluate(renderer))});
  if (test != nullptr) {
    all->passes = [this, &renderer, scope = renderer.scope()](const Value& item) {
      renderer.count_work();
      const Renderer::Within within(renderer, scope);
      renderer.assign(target, item);
      return is_true(test->evaluate(renderer));
    };
  }
  std::shared_ptr<Value> last_changed;
  bool is_completed = false;
  for (std::size_t i = 0; all->has(i); ++i) {
    renderer.count_work();
    if (i == 0) last_changed = renderer.make_variable_of_loop();
    const Renderer::Within within(renderer);
    renderer.set("loop", std::make_shared<const Loop>(Loop{all, i, last_changed}));
    renderer.assign(target, all->found[i]);
    const Flow flow = renderer.run(body, out);
    is_completed = is_completed || flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  // Jinja's `else` runs if no turn was completed; a jump in it is the outer loop's.
  return is_completed ? Flow::kNext : renderer.run_apart(otherwise, out);
}

Flow Assign::run(Renderer& renderer, std::string& /*out*/) const {
  if (value != nullptr) {
    renderer.assign(target, value->evaluate(renderer));
  } else {
    std::string text;
    const Flow flow = renderer.run_apart(body, text);
    if (flow != Flow::kNext) return flow;  // a jump leaves the block without a text
    renderer.assign(target, through_filters(filters, std::move(text), renderer));
  }
  return Flow::kNext;
}

Flow Macro::run(Renderer& renderer, std::string& /*out*/) const {
  renderer.set(name, renderer.make_macro(*this));
  return Flow::kNext;
}

Flow CallBlock::run(Renderer& renderer, std::string& out) const {
  const Value function = call->function->evaluate(renderer);
  const Callable& callable = require_callable(function);
  Arguments arguments = call->arguments.evaluate(renderer);
  arguments.named.emplace_back("caller", renderer.make_macro(caller));
  append_text_of(renderer.call(callable, arguments), out);
  return Flow::kNext;
}

Flow FilterBlock::run(Renderer& renderer, std::string& out) const {
  std::string text;
  const Flow flow = renderer.run_apart(body, text);
  if (flow != Flow::kNext) return flow;
  append_text_of(through_filters(filters, std::move(text), renderer), out);
  return Flow::kNext;
}

Flow With::run(Renderer& renderer, std::string& out) const {
  Values evaluated;
  for (const auto& [target, value] : values) evaluated.push_back(value->evaluate(renderer));
  const Renderer::Within within(renderer);
  for (std::size_t i = 0; i < values.size(); ++i) renderer.assign(values[i].first, evaluated[i]);
  return renderer.run(body, out);
}

Flow Generation::run(Renderer& renderer, std::string& out) const {
  append(out, renderer.marks().first);
  renderer.run_apart(body, out);
  append(out, renderer.marks().second);
  return Flow::kNext;
}

}  // namespace teratron::jinja
