// Work: what a layer computes of each row, on one rank, as plain values. It stands beside carve(), which says what the
// layer keeps. Plans and counts of operations are sums over it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace teratron {

struct Work {
  // Weights [outputs, inputs] on this rank, multiplied with every row.
  struct Product {
    std::int64_t inputs = 0, outputs = 0;
    double operations() const { return 2.0 * static_cast<double>(inputs) * static_cast<double>(outputs); }
  };
  // Heads on this rank.
  struct Attention {
    std::int64_t heads = 0, key_heads = 0, head_size = 0;
    std::int64_t window = 0;  // keys that a query sees at most; 0: all
    bool causal = true;

    std::int64_t columns() const { return heads * head_size; }
    // Mean number of keys that each of `tokens` queries sees, which follow `context` others in their sequence. A causal
    // query counts half of its own key, so that a whole sequence counts as half of its square.
    double keys_seen(double tokens, double context) const {
      if (!causal) return context + tokens;
      const double most = window == 0 ? tokens + context : static_cast<double>(window);
      const auto sum = [&](double queries) {  // of the first so many of a sequence
        const double growing = std::min(queries, most);
        return growing * growing / 2 + (queries - growing) * most;
      };
      return tokens == 0 ? 0 : (sum(tokens + context) - sum(context)) / tokens;
    }
    // Operations of a row, forward: the scores' product and that of the probabilities with the values.
    double operations(double tokens, double context) const {
      return 4 * static_cast<double>(columns()) * keys_seen(tokens, context);
    }
  };

  std::vector<Product> products;  // in the order of a forward pass
  std::vector<Product> adapters;  // A and B of each adapter; if there are any, `products` are frozen
  Attention attention;            // no heads: none
  // Passes over memory beside products: over rows of the residual stream, and over this rank's columns of a row.
  std::int64_t norms = 0, residual_adds = 0;
  std::int64_t activated_columns = 0;  // that activations read
  std::int64_t projected_columns = 0;  // queries, keys and values

  double product_operations() const { return operations_of(products); }
  double adapter_operations() const { return operations_of(adapters); }
  // Operations of a row, forward.
  double operations(double tokens, double context) const {
    return product_operations() + attention.operations(tokens, context);
  }
  // Forward and backward, which has twice the operations of a forward, but for the products with frozen weights.
  double training_operations(double tokens, double context) const {
    return (adapters.empty() ? 3 : 2) * product_operations() + 3 * adapter_operations() +
           3 * attention.operations(tokens, context);
  }

 private:
  static double operations_of(const std::vector<Product>& products) {
    double sum = 0;
    for (const Product& product : products) sum += product.operations();
    return sum;
  }
};

}  // namespace teratron
