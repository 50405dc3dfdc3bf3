#include "jinja/template.h"

#include "base/utf8.h"
#include "jinja/renderer.h"
#include "jinja/syntax/parser.h"

namespace teratron::jinja {

Template::Template(std::string_view source) {
  if (!is_utf8(source)) fail("the template is not UTF-8");
  tree_ = std::make_unique<const Tree>(parse(source));
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;

std::string Template::render(const Context& context) const {
  Renderer renderer(context);
  std::string out;
  try {
    renderer.run(tree_->body, out);
  } catch (const Error& error) {
    fail("line {}: {}", renderer.line(), error.what());
  }
  return out;
}

bool Template::has_generation() const { return tree_->has_generation; }

}  // namespace teratron::jinja
