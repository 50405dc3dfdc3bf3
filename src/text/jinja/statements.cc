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
  out += text;
  return Flow::kNext;
}

Flow Output::run(Renderer& renderer, std::string& out) const {
  out += text_of(value->evaluate(renderer));
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
  auto kept = std::make_shared<Values>();
  for (Value& item : elements(items->evaluate(renderer))) {
    if (test != nullptr) {
      renderer.count_work();
      const Renderer::Within within(renderer);
      renderer.assign(target, item);
      if (!is_true(test->evaluate(renderer))) continue;
    }
    kept->push_back(std::move(item));
  }
  const std::shared_ptr<const Values> all = std::move(kept);
  const Extent extent = extent_around(*all);
  bool is_completed = false;
  const std::shared_ptr<Value> last_changed = all->empty() ? nullptr : renderer.make_variable_of_loop();
  for (std::size_t i = 0; i < all->size(); ++i) {
    renderer.count_work();
    const Renderer::Within within(renderer);
    renderer.set("loop", std::make_shared<const Loop>(Loop{all, extent, i, last_changed}));
    renderer.assign(target, (*all)[i]);
    const Flow flow = renderer.run(body, out);
    is_completed = is_completed || flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  // Jinja's else follows where no turn came to its end, and a jump in it is the outer loop's.
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
  require_defined(function);
  if (function.callable() == nullptr) fail("'{}' object is not callable", type_name(function));
  Arguments arguments = call->arguments.evaluate(renderer);
  arguments.named.emplace_back("caller", renderer.make_macro(caller));
  out += text_of(renderer.call(*function.callable(), arguments));
  return Flow::kNext;
}

Flow FilterBlock::run(Renderer& renderer, std::string& out) const {
  std::string text;
  const Flow flow = renderer.run_apart(body, text);
  if (flow != Flow::kNext) return flow;
  out += text_of(through_filters(filters, std::move(text), renderer));
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
  out += renderer.marks().first;
  renderer.run_apart(body, out);
  out += renderer.marks().second;
  return Flow::kNext;
}

}  // namespace teratron::jinja
