#include "parquet/file/schema.h"

#include <utility>

#include "parquet/file/fault.h"

namespace teratron::parquet {
namespace {

class TreeBuilder {
 public:
  explicit TreeBuilder(const std::vector<SchemaElement>& elements) : elements_(elements) {}

  Schema build() {
    const SchemaElement& root = take();
    if (root.type) throw_damaged("its schema begins with a column");
    if (root.children == 0) throw_unsupported("no columns");  // whose rows would take nothing of the file
    Schema schema;
    for (std::int32_t i = 0; i < root.children; ++i) schema.members.push_back(field(0, 0));
    if (at_ != elements_.size()) throw_damaged("its schema has {} elements too many", elements_.size() - at_);
    schema.leaves = std::move(leaves_);
    return schema;
  }

 private:
  const SchemaElement& peek() const {
    if (at_ == elements_.size()) throw_damaged("its schema breaks off");
    return elements_[at_];
  }
  const SchemaElement& take() {
    const SchemaElement& element = peek();
    ++at_;
    return element;
  }

  // The next element, in a parent with these levels.
  Node field(int definition, int repetition) {
    const SchemaElement& element = take();
    const std::size_t above = path_.size();
    path_ += (path_.empty() ? "" : ".") + element.name;
    constexpr std::size_t kLongestPath = 4096;  // each column has one
    if (path_.size() > kLongestPath) throw_unsupported("names of more than {} bytes", kLongestPath);
    Node node;
    if (element.repetition == Repetition::kRepeated) {
      node = list_around(definition, repetition,
                         [&](int inner, int inner_repetition) { return value(element, inner, inner_repetition); });
    } else {
      node = value(element, definition + (element.repetition == Repetition::kOptional ? 1 : 0), repetition);
    }
    node.name = element.name;
    path_.resize(above);
    return node;
  }

  // An element that is there whenever its parent with these levels is.
  Node value(const SchemaElement& element, int definition, int repetition) {
    constexpr int kDeepest = 64;
    if (++depth_ > kDeepest) throw_unsupported("columns nested deeper than {}", kDeepest);
    Node node = element.type ? leaf(element, definition, repetition) : group(element, definition, repetition);
    --depth_;
    return node;
  }

  Node leaf(const SchemaElement& element, int definition, int repetition) {
    if (element.children > 0) throw_damaged("its column '{}' has columns", path_);
    leaves_.push_back({.path = path_, .element = element, .max_definition = definition, .max_repetition = repetition});
    return {.kind = Node::Kind::kLeaf,
            .definition = definition,
            .first_leaf = leaves_.size() - 1,
            .end_leaf = leaves_.size()};
  }

  Node group(const SchemaElement& element, int definition, int repetition) {
    if (element.children == 0) throw_unsupported("groups without columns ('{}')", path_);
    const bool holds_one = element.children == 1 && peek().repetition == Repetition::kRepeated;
    if (holds_one && element.meaning == Meaning::kMap && !peek().type && peek().children == 2) {
      return map(definition, repetition);
    }
    if (holds_one && (element.meaning == Meaning::kList || element.meaning == Meaning::kMap)) {
      return list(element, definition, repetition);
    }
    Node node{.kind = Node::Kind::kStruct, .definition = definition, .first_leaf = leaves_.size()};
    for (std::int32_t i = 0; i < element.children; ++i) node.children.push_back(field(definition, repetition));
    node.end_leaf = leaves_.size();
    return node;
  }

  template <class Element>
  Node list_around(int definition, int repetition, const Element& element) {
    Node node{.kind = Node::Kind::kList,
              .definition = definition,
              .element_definition = definition + 1,
              .repetition = repetition + 1,
              .first_leaf = leaves_.size()};
    node.children.push_back(element(definition + 1, repetition + 1));
    node.end_leaf = leaves_.size();
    return node;
  }

  // The repeated group is a layer of its own in files of today, and the element itself in older ones.
  Node list(const SchemaElement& around, int definition, int repetition) {
    const SchemaElement& repeated = take();
    const bool is_element = repeated.type || repeated.children != 1 || repeated.name == "array" ||
                            repeated.name == around.name + "_tuple" || peek().repetition == Repetition::kRepeated;
    return list_around(definition, repetition, [&](int inner, int inner_repetition) {
      return is_element ? value(repeated, inner, inner_repetition) : field(inner, inner_repetition);
    });
  }

  Node map(int definition, int repetition) {
    take();
    Node node = list_around(definition, repetition,
                            [&](int inner, int inner_repetition) { return field(inner, inner_repetition); });
    node.kind = Node::Kind::kMap;
    node.children.push_back(field(definition + 1, repetition + 1));
    node.end_leaf = leaves_.size();
    return node;
  }

  const std::vector<SchemaElement>& elements_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string path_;  // of the element
  std::vector<Leaf> leaves_;
};

}  // namespace

Schema make_schema(const std::vector<SchemaElement>& elements) { return TreeBuilder(elements).build(); }

}  // namespace teratron::parquet
