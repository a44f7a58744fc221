#include "kernels/reduce.h"

#include "kernels/cpu/reduce.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

double sum_of_squares(Stream& stream, const Tensor& x) {
  KernelScope scope(stream, KernelKind::kReduce, 2 * static_cast<double>(x.numel()),
                    static_cast<double>(x.bytes()));
  stream.synchronize();
  double sum = 0;
  DEW_DISPATCH(stream, sum_of_squares(x, sum));
  return sum;
}

void sum_in_order(Stream& stream, std::span<const Tensor> terms, const Tensor& y, bool accumulate) {
  DEW_CHECK(!terms.empty());
  for (const Tensor& term : terms)
    DEW_CHECK(term.numel() == y.numel() && term.dtype() == y.dtype(), term.shape(), y.shape(),
              name_of(term.dtype()), name_of(y.dtype()));
  const double added = static_cast<double>(terms.size()) - (accumulate ? 0 : 1);
  KernelScope scope(stream, KernelKind::kReduce, added * static_cast<double>(y.numel()),
                    (added + 2) * static_cast<double>(y.bytes()));
  DEW_DISPATCH(stream, sum_in_order(terms, y, accumulate));
}

}  // namespace dew::kernels
