#include "kernels/gemm.h"

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/dispatch.h"
#include "kernels/progress.h"

namespace dew::kernels {
namespace {

/// Rows and columns of a tensor whose leading dims are folded into the first.
struct Extents {
  std::int64_t rows = 0, columns = 0;
};

Extents folded(const Tensor& tensor) {
  DEW_CHECK(tensor.shape().dims() >= 2, tensor.shape());
  Extents extents{1, tensor.dim(-1)};
  for (int i = 0; i + 1 < tensor.shape().dims(); ++i) extents.rows *= tensor.dim(i);
  return extents;
}

Extents transposed_if(Transpose transpose, Extents extents) {
  return transpose == Transpose::kYes ? Extents{extents.columns, extents.rows} : extents;
}

}  // namespace

bool multiplies_bf16() {
  return cpu::bf16_products() == cpu::Bf16Products::kNative;
}

void gemm(Stream& stream, const Tensor& a, Transpose trans_a, const Tensor& b, Transpose trans_b,
          const Target& c) {
  const Extents left = transposed_if(trans_a, folded(a));
  const Extents right = transposed_if(trans_b, folded(b));
  const Extents result = folded(c.into);
  DEW_CHECK(left.columns == right.rows, a.shape(), b.shape());
  DEW_CHECK(result.rows == left.rows && result.columns == right.columns, a.shape(), b.shape(),
            c.into.shape());
  const bool wide = a.dtype() == DType::kBf16 && c.into.dtype() == DType::kF32;
  DEW_CHECK(a.dtype() == b.dtype() && (a.dtype() == c.into.dtype() || wide), name_of(a.dtype()),
            name_of(b.dtype()), name_of(c.into.dtype()));

  const GemmShape shape{.m = left.rows,
                        .n = right.columns,
                        .k = left.columns,
                        .trans_a = trans_a == Transpose::kYes,
                        .trans_b = trans_b == Transpose::kYes,
                        .accumulate = c.accumulate,
                        .wide = wide};
  const double flops =
      2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const std::size_t moved = a.bytes() + b.bytes() + c.into.bytes() * (c.accumulate ? 2 : 1);
  progress_before(stream, flops);
  const Tensor scratch =
      Tensor::empty(Shape{cpu::gemm_scratch(shape, a.dtype())}, real_of(a.dtype()), stream, Owner::kBuffers);
  const KernelScope scope(stream, KernelKind::kGemm, flops, static_cast<double>(moved));
  DEW_DISPATCH(stream, gemm(shape, a, b, c.into, scratch));
}

}  // namespace dew::kernels
