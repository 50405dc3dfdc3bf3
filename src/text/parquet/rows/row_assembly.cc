#include "parquet/rows/row_assembly.h"

#include "base/base64.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "parquet/file/fault.h"
#include "parquet/rows/json_value.h"

namespace teratron::parquet {
namespace {

bool is_text(const SchemaElement& element) { return element.meaning == Meaning::kText; }

// Whether the values are bytes that no type calls text, a number or something else.
bool is_bytes(const SchemaElement& element) {
  const bool has_bytes = element.type == PhysicalType::kByteArray || element.type == PhysicalType::kFixedByteArray;
  return has_bytes && (element.meaning == Meaning::kPlain || element.meaning == Meaning::kBytes);
}

// Whether a map's keys are texts, which an object of JSON needs.
bool has_text_keys(const Schema& schema, const Node& map) {
  const Node& key = map.children[0];
  if (key.kind != Node::Kind::kLeaf || key.definition != map.element_definition) return false;
  const SchemaElement& element = schema.leaves[key.first_leaf].element;
  return is_text(element) || is_bytes(element) || element.meaning == Meaning::kUuid;
}

void append_key(const std::string& name, std::string& out) {
  append_json_string(name, out);
  out += ": ";
}

}  // namespace

RowAssembly::RowAssembly(const Schema& schema, const std::vector<const Node*>& members, std::size_t most_bytes)
    : schema_(schema), most_bytes_(most_bytes), columns_(schema.leaves.size()) {
  for (const Node* member : members) members_.push_back({.node = member});
}

bool RowAssembly::read_bytes(std::string_view name, BytesAs as) {
  bool are_bytes = false;
  for (Member& member : members_) {
    if (member.node->name != name) continue;
    member.bytes = as;
    are_bytes = member.node->kind == Node::Kind::kLeaf && is_bytes(schema_.leaves[member.node->first_leaf].element);
  }
  return are_bytes;
}

void RowAssembly::begin(const RandomAccessFile& file, const RowGroup& group, PageMemory& memory) {
  for (const Member& member : members_) {
    for (std::size_t leaf = member.node->first_leaf; leaf < member.node->end_leaf; ++leaf) {
      columns_[leaf].reset();
      columns_[leaf] = std::make_unique<ColumnReader>(file, schema_.leaves[leaf], group.columns[leaf], memory);
    }
  }
}

void RowAssembly::append_row(std::string& out) {
  row_begin_ = out.size();
  out += '{';
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i > 0) out += ", ";
    bytes_ = members_[i].bytes;
    append_key(members_[i].node->name, out);
    append(*members_[i].node, out);
  }
  out += '}';
  for (const auto& column : columns_) {
    if (column && column->repetition() != 0) throw_damaged("its columns disagree about where a row ends");
  }
}

void RowAssembly::end() {
  for (auto& column : columns_) {
    if (column && !column->is_at_end()) throw_damaged("its columns have more values than its rows");
    column.reset();
  }
}

void RowAssembly::append(const Node& node, std::string& out) {
  ColumnReader& first = first_of(node);
  const int definition = first.definition();
  if (definition < node.definition) {
    skip(node);
    out += "null";
  } else if (node.kind == Node::Kind::kLeaf) {
    append_value(node, first.take(), out);
  } else if (node.kind == Node::Kind::kStruct) {
    append_members(node, out);
  } else {
    append_list(node, out);
  }
  require_size(out);
}

void RowAssembly::append_value(const Node& leaf, std::string_view value, std::string& out) const {
  const SchemaElement& element = schema_.leaves[leaf.first_leaf].element;
  if (bytes_ == BytesAs::kBase64 && is_bytes(element)) return append_json_string(base64_of(value), out);
  if (bytes_ == BytesAs::kText && (is_bytes(element) || is_text(element)) && !is_utf8(value)) throw NoText(leaf.name);
  append_json_value(element, value, out);
}

void RowAssembly::append_members(const Node& node, std::string& out) {
  out += '{';
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) out += ", ";
    append_key(node.children[i].name, out);
    append(node.children[i], out);
  }
  out += '}';
}

// A list, or a map: an object where its keys are texts, otherwise a list of pairs.
void RowAssembly::append_list(const Node& node, std::string& out) {
  ColumnReader& first = first_of(node);
  const bool is_map = node.kind == Node::Kind::kMap, is_object = is_map && has_text_keys(schema_, node);
  out += is_object ? '{' : '[';
  if (first.definition() < node.element_definition) {
    skip(node);
  } else {
    do {
      if (out.back() != '{' && out.back() != '[') out += ", ";
      if (is_map && !is_object) out += '[';
      append(node.children[0], out);
      if (is_map) {
        out += is_object ? ": " : ", ";
        append(node.children[1], out);
      }
      if (is_map && !is_object) out += ']';
    } while (first.repetition() >= node.repetition);
  }
  out += is_object ? '}' : ']';
}

// Takes the entry by which each column marks an absent value.
void RowAssembly::skip(const Node& node) {
  for (std::size_t leaf = node.first_leaf; leaf < node.end_leaf; ++leaf) columns_[leaf]->take();
}

void RowAssembly::require_size(const std::string& out) const {
  if (out.size() - row_begin_ > most_bytes_) throw_unsupported("a row of more than {} MiB", most_bytes_ >> 20);
}

}  // namespace teratron::parquet
