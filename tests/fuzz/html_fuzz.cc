// A page of HTML: any bytes give a tree or a refusal.
#include "corpus/extract/article.h"
#include "corpus/extract/html_tree.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto parsed = parse_html(input, std::size_t{1} << 28);
  const auto* tree = std::get_if<HtmlTree>(&parsed);
  if (tree == nullptr) return;
  const auto nodes = static_cast<std::int32_t>(tree->nodes.size());
  for (std::int32_t i = 0; i < nodes; ++i) {
    const HtmlNode& node = tree->nodes[static_cast<std::size_t>(i)];
    require(node.parent < i && node.end > i && node.end <= nodes, "nodes are in page order");
  }
  find_article(*tree, 1);
}
