#include "kernels/embedding.h"

#include "kernels/cpu/embedding.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

void check_rows(const Tensor& tokens, const Tensor& table, const Tensor& rows) {
  DEW_CHECK(tokens.dtype() == DType::kI32, name_of(tokens.dtype()));
  DEW_CHECK(table.shape().dims() == 2, table.shape());
  DEW_CHECK(rows.numel() == tokens.numel() * table.dim(1), tokens.shape(), table.shape(), rows.shape());
}

}  // namespace

void embedding_forward(Stream& stream, const Tensor& tokens, const Tensor& table, const Tensor& y) {
  check_rows(tokens, table, y);
  DEW_CHECK(y.dtype() == table.dtype(), name_of(y.dtype()), name_of(table.dtype()));
  KernelScope scope(stream, KernelKind::kEmbedding, 0, 2 * static_cast<double>(y.bytes()));
  DEW_DISPATCH(stream, embedding_forward(tokens, table, y));
}

void embedding_backward(Stream& stream, const Tensor& tokens, const Tensor& dy, const Target& d_table) {
  check_rows(tokens, d_table.into, dy);
  const DType from = dy.dtype(), to = d_table.into.dtype();
  DEW_CHECK((from == DType::kF32 || from == DType::kF64) && (to == from || to == DType::kF64), name_of(from),
            name_of(to));
  const double added = static_cast<double>(dy.numel());
  const double zeroed = d_table.accumulate ? 0 : static_cast<double>(d_table.into.bytes());
  KernelScope scope(stream, KernelKind::kEmbedding, added,
                    static_cast<double>(dy.bytes()) + 2 * added * static_cast<double>(size_of(to)) + zeroed);
  DEW_DISPATCH(stream, embedding_backward(tokens, dy, d_table));
}

}  // namespace dew::kernels
