// The two ways in which attention multiplies matrices: in fp32, whatever is stored (gemm_kernel-inl.h), or in bf16
// where the processor does (bf16_kernels.h). Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_PRODUCTS_INL_H_
#undef TERATRON_OPS_CPU_PRODUCTS_INL_H_
#else
#define TERATRON_OPS_CPU_PRODUCTS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/cpu/attention/attention.h"
#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {

// Products c (+)= a b in fp32. FloatProducts and Bf16Products, either of which is the parameter P of attention, have:
//   Stored           type of a and b in memory
//   Word, Factor     types of an element of a panel of b, and of a row of a
//   kRows, kColumns  rows of a tile, columns of a panel
//   kDepths          depths that are multiplied at a time: a panel can be read from every kDepths-th depth on
//   kConverts        rows() converts what memory holds
//   kRounds          fp32 results are rounded (round_to_bf16) before they are rows of a
//   words            Words of a panel's column of this depth
//   pack, pack_transposed, multiply   pack b into panels, and multiply rows of a by one panel (gemm_kernel-inl.h)
//   rows             a matrix as rows of a: in place or, with kConverts, in `converted`
template <class T>
struct FloatProducts {
  using Stored = T;
  using Word = float;
  using Factor = float;
  static constexpr std::int64_t kRows = kTileRows, kColumns = kPanelColumns, kDepths = 1;
  static constexpr bool kConverts = !std::is_same_v<T, float>, kRounds = false;

  static std::int64_t words(std::int64_t depth) { return depth; }
  static void pack(const T* b, std::int64_t stride, std::int64_t depth, std::int64_t columns, Word* panels) {
    pack_panels(b, stride, depth, columns, panels);
  }
  static void pack_transposed(const T* b, std::int64_t stride, std::int64_t depth, std::int64_t columns, Word* panel) {
    pack_panel_transposed(b, stride, depth, columns, panel);
  }
  static void multiply(std::int64_t rows, std::int64_t depth, const Factor* a, std::int64_t a_stride, const Word* panel,
                       float* c, std::int64_t c_stride, bool accumulate) {
    multiply_panel<false>(rows, kColumns, depth, a, a_stride, panel, c, c_stride, accumulate);
  }
  static HeadMatrix<const Factor> rows(const HeadMatrix<T>& from, std::int64_t rows, std::int64_t size,
                                       float* converted) {
    if constexpr (!kConverts) {
      return {from.data, from.stride};
    } else {
      for (std::int64_t i = 0; i < rows; ++i) widen_row(from.row(i), size, converted + i * size);
      return {converted, size};
    }
  }
};

struct Bf16Products {
  using Stored = Bf16;
  using Word = std::uint32_t;
  using Factor = Bf16;
  static constexpr std::int64_t kRows = kBf16TileRows, kColumns = kBf16PanelColumns, kDepths = kBf16Depths;
  static constexpr bool kConverts = false, kRounds = true;

  static std::int64_t words(std::int64_t depth) { return bf16_pairs(depth); }
  static void pack(const Bf16* b, std::int64_t stride, std::int64_t depth, std::int64_t columns, Word* panels) {
    pack_bf16_panels(b, stride, depth, columns, panels);
  }
  static void pack_transposed(const Bf16* b, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                              Word* panel) {
    pack_bf16_panel_transposed(b, stride, depth, columns, panel);
  }
  static void multiply(std::int64_t rows, std::int64_t depth, const Factor* a, std::int64_t a_stride, const Word* panel,
                       float* c, std::int64_t c_stride, bool accumulate) {
    multiply_bf16_panel(rows, kColumns, depth, a, a_stride, panel, c, c_stride, accumulate);
  }
  static HeadMatrix<const Factor> rows(const HeadMatrix<Bf16>& from, std::int64_t, std::int64_t, float*) {
    return {from.data, from.stride};
  }
};

// This thread's block of scratch memory, as `count` words of 32 bits.
template <class Word>
Word* scratch_words(Scratch use, std::int64_t count) {
  return reinterpret_cast<Word*>(scratch_floats(use, count));
}

// Calls choose(FloatProducts<T>()) for the type in memory or, with bf16_products, choose(Bf16Products()).
template <class Choose>
auto choose_products(DType dtype, bool bf16_products, const Choose& choose) {
  if (bf16_products) return choose(Bf16Products());
  return choose_by_storage(dtype, [&]<class T>(ElementType<T>) { return choose(FloatProducts<T>()); });
}

}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
