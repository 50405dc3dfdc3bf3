#include "data/samples/documents.h"

#include "base/error.h"

namespace teratron {

void find_document_starts(std::span<const std::int32_t> tokens, std::int32_t end_token,
                          std::span<std::int32_t> starts) {
  check_equal(starts.size(), tokens.size(), "starts of documents");
  std::int32_t start = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    starts[t] = start;
    if (tokens[t] == end_token) start = static_cast<std::int32_t>(t) + 1;
  }
}

void find_document_positions(std::span<const std::int32_t> tokens, std::int32_t end_token,
                             std::span<std::int32_t> positions) {
  find_document_starts(tokens, end_token, positions);
  for (std::size_t t = 0; t < tokens.size(); ++t) positions[t] = static_cast<std::int32_t>(t) - positions[t];
}

}  // namespace teratron
