#include "kernels/embedding.h"

#include "kernels/cpu/embedding.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

void check_rows(const Tensor& tokens, const Tensor& table, const VocabPart& part, const Tensor& rows) {
  DEW_CHECK(tokens.dtype() == DType::kI32, name_of(tokens.dtype()));
  DEW_CHECK(table.shape().dims() == 2, table.shape());
  DEW_CHECK(part.first >= 0 && part.first + table.dim(0) <= part.size, part.first, table.shape(), part.size);
  DEW_CHECK(rows.numel() == tokens.numel() * table.dim(1), tokens.shape(), table.shape(), rows.shape());
}

}  // namespace

void embedding_forward(Stream& stream, const Tensor& tokens, const Tensor& table, const Tensor& y) {
  embedding_forward(stream, tokens, table, VocabPart{0, table.dim(0)}, y);
}

void embedding_backward(Stream& stream, const Tensor& tokens, const Tensor& dy, const Target& d_table) {
  embedding_backward(stream, tokens, dy, VocabPart{0, d_table.into.dim(0)}, d_table);
}

void embedding_forward(Stream& stream, const Tensor& tokens, const Tensor& table, const VocabPart& part,
                       const Tensor& y) {
  check_rows(tokens, table, part, y);
  DEW_CHECK(y.dtype() == table.dtype(), name_of(y.dtype()), name_of(table.dtype()));
  KernelScope scope(stream, KernelKind::kEmbedding, 0, 2 * static_cast<double>(y.bytes()));
  DEW_DISPATCH(stream, embedding_forward(tokens, table, part, y));
}

void embedding_backward(Stream& stream, const Tensor& tokens, const Tensor& dy, const VocabPart& part,
                        const Target& d_table) {
  check_rows(tokens, d_table.into, part, dy);
  const DType from = dy.dtype(), to = d_table.into.dtype();
  DEW_CHECK(to == real_of(from) || to == DType::kF64, name_of(from), name_of(to));
  const double added = static_cast<double>(dy.numel());
  const double zeroed = d_table.accumulate ? 0 : static_cast<double>(d_table.into.bytes());
  KernelScope scope(stream, KernelKind::kEmbedding, added,
                    static_cast<double>(dy.bytes()) + 2 * added * static_cast<double>(size_of(to)) + zeroed);
  DEW_DISPATCH(stream, embedding_backward(tokens, dy, part, d_table));
}

}  // namespace dew::kernels
