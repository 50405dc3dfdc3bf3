// oneDNN's matrix product out[m,n] = a[m,k] b[n,k]^T, which benchmarks compare with: fp32, or bf16 with a bf16 result.
#pragma once

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/float_types.h"

namespace teratron {

// The instructions that oneDNN uses at most (ONEDNN_MAX_CPU_ISA of the environment bounds them), after its version.
inline std::string onednn_instructions() {
  const auto name = [](dnnl::cpu_isa isa) {
    switch (isa) {
      case dnnl::cpu_isa::sse41: return "SSE4.1";
      case dnnl::cpu_isa::avx: return "AVX";
      case dnnl::cpu_isa::avx2: return "AVX2";
      case dnnl::cpu_isa::avx2_vnni: return "AVX2, AVX-VNNI";
      case dnnl::cpu_isa::avx512_core: return "AVX-512";
      case dnnl::cpu_isa::avx512_core_vnni: return "AVX-512 with VNNI";
      case dnnl::cpu_isa::avx512_core_bf16: return "AVX-512 with BF16";
      case dnnl::cpu_isa::avx512_core_amx: return "AVX-512 with AMX";
      default: return "instructions without a name";
    }
  };
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}", version.major, version.minor, version.patch,
                     name(dnnl::get_effective_cpu_isa()));
}

class OneDnnProduct {
 public:
  OneDnnProduct(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype)
      : m_(m), n_(n), k_(k), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    try {
      product_ = make(dtype);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      throw_environment_error(
          "oneDNN has no matrix product of {} values for this processor, which lacks AVX-512 (with BF16 for bf16); "
          "compare in fp32, or run on a processor that has it",
          name_of(dtype));
    }
    const auto fill = [&](std::vector<std::uint16_t>& values, std::int64_t count, float value) {
      const auto bytes = static_cast<std::size_t>(count * size_of(dtype));
      values.resize(bytes / 2);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // 0.5 and 0.25 in fp32 have the bits of bf16 above zeros.
        values[i] = dtype == DType::kBF16 || i % 2 == 1 ? float_to_bf16(value) : std::uint16_t{0};
      }
    };
    fill(a_, m * k, 0.5F);
    fill(b_, n * k, 0.25F);
    fill(out_, m * n, 0);
  }

  double flops() const { return 2.0 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_); }

  void run() {
    if (!product_) {
      dnnl_sgemm('N', 'T', m_, n_, k_, 1, floats(a_), k_, floats(b_), k_, 0, floats(out_), n_);
      return;
    }
    const dnnl::matmul::primitive_desc& about = about_;
    product_.execute(stream_, {{DNNL_ARG_SRC, {about.src_desc(), engine_, a_.data()}},
                               {DNNL_ARG_WEIGHTS, {about.weights_desc(), engine_, b_.data()}},
                               {DNNL_ARG_DST, {about.dst_desc(), engine_, out_.data()}}});
    stream_.wait();
  }

 private:
  using Tag = dnnl::memory::format_tag;

  static float* floats(std::vector<std::uint16_t>& values) { return reinterpret_cast<float*>(values.data()); }

  dnnl::matmul make(DType dtype) {
    if (dtype != DType::kBF16) return {};
    const auto of = [](std::int64_t rows, std::int64_t columns, Tag tag) {
      return dnnl::memory::desc({rows, columns}, dnnl::memory::data_type::bf16, tag);
    };
    about_ = dnnl::matmul::primitive_desc(
        dnnl::matmul::desc(of(m_, k_, Tag::ab), of(k_, n_, Tag::ba), of(m_, n_, Tag::ab)), engine_);
    return dnnl::matmul(about_);
  }

  std::int64_t m_, n_, k_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul::primitive_desc about_;
  dnnl::matmul product_;
  std::vector<std::uint16_t> a_, b_, out_;
};

}  // namespace teratron
