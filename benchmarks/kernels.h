// What the groups of rows of bench_kernels share: tensors, turns, bounds and the form of a row.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace dew::bench {

using Work = std::function<void()>;

/// Formats that are measured: a kernel's rows come once for each.
inline constexpr std::array kMeasuredTypes{DType::kF32, DType::kBf16, DType::kF64};

/// What rows of a format are summed in: statistics, losses and gradients of weights.
constexpr DType sums_of(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}
/// Whether weights are stored and updated in this format.
constexpr bool is_master(DType dtype) {
  return dtype == sums_of(dtype);
}

struct Extents {
  std::int64_t m, n, k;
};

/// How a product takes its operands, as in kernels::gemm.
struct ProductForm {
  bool a_turned = false, b_turned = false, adds = false;
};

/// c = op(a) op(b), or c += it, by the strongest library at hand for the format.
Work library_product(Extents x, ProductForm form, const Tensor& a, const Tensor& b, const Tensor& c);

/// One kernel call: what it takes, and the least it could take here.
struct Measured {
  double flops = 0, bytes = 0;  ///< as the kernel counts them; each byte once
  double seconds = 0;           ///< the best
  double matrix_seconds = 0;    ///< of a product of as many FLOP, at the rate of the best product at hand
  double copy_seconds = 0;      ///< of a copy that reads and writes as many bytes in all

  double bound() const { return std::max(matrix_seconds, copy_seconds); }
};

Measured operator+(const Measured& a, const Measured& b);

class KernelBench {
 public:
  /// `rounds` turns for each measurement; 0: at least 5, and as many as fit a time.
  explicit KernelBench(int rounds) : rounds_(rounds) {}

  Stream& stream() { return stream_; }
  /// Values spread over [-1, 1).
  Tensor tensor(const Shape& shape, DType dtype);
  /// Token ids below `vocab`.
  Tensor ids(std::int64_t count, std::int64_t vocab);

  /// Each of several kernel calls, its copy and the reference products, taking turns so that a disturbance
  /// meets them alike. A work that is no kernel counts no FLOP and no bytes.
  std::vector<Measured> measure(DType dtype, const std::vector<Work>& works);

  void heading(DType dtype, const char* title) const;
  static void print(const std::string& name, const std::string& shape, const Measured& measured,
                    const std::string& more = {});
  /// Measures one call and prints it.
  Measured row(DType dtype, const std::string& name, const std::string& shape, const Work& work);

 private:
  static constexpr std::int64_t kReferenceSide = 768;

  /// Our product and the library's, of the reference size; either may be the faster.
  std::array<Work, 2> reference_products(DType dtype);
  /// Reads and writes `bytes` in all, with as many threads as kernels have.
  Work plain_copy(double bytes);
  std::vector<double> best_seconds(const std::vector<Work>& works) const;
  Measured cost_of(const Work& work);

  int rounds_;
  Allocator allocator_{Device{}};
  Stream stream_{allocator_};
};

void gemm_rows(KernelBench& bench, DType dtype);
void attention_rows(KernelBench& bench, DType dtype);
void row_kernels(KernelBench& bench, DType dtype);      ///< of activations: norms, MLPs, embedding, loss
void element_kernels(KernelBench& bench, DType dtype);  ///< arithmetic, sums, optimizer, random numbers

}  // namespace dew::bench
