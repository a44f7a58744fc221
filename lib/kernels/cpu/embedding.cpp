#include "kernels/cpu/embedding.h"

#include <cstring>

#include "kernels/cpu/add_row.h"
#include "kernels/cpu/parallel.h"

namespace dew::kernels::cpu {

namespace {

constexpr std::int64_t kColumns = 64;  ///< grain of columns: whole cache lines

void check_tokens(const Tensor& tokens, std::int64_t vocabulary) {
  const std::int32_t* token = tokens.data<std::int32_t>();
  for (std::int64_t t = 0; t < tokens.numel(); ++t)
    DEW_CHECK(token[t] >= 0 && token[t] < vocabulary, t, token[t], vocabulary);
}

template <class T, class R>
void add_rows(const Tensor& tokens, const Tensor& dy, std::int64_t first, const Tensor& d_table) {
  const std::int64_t d = d_table.dim(1), rows = d_table.dim(0), count = tokens.numel();
  const std::int32_t* token = tokens.data<std::int32_t>();
  const T* in = dy.data<T>();
  R* out = d_table.data<R>();
  parallel_ranges(d, kColumns, count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t row = token[t] - first;
      if (row >= 0 && row < rows) add_row(in + t * d + begin, out + row * d + begin, end - begin);
    }
  });
}

}  // namespace

void embedding_forward(const Tensor& tokens, const Tensor& table, const VocabPart& part, const Tensor& y) {
  check_tokens(tokens, part.size);
  const std::int64_t rows = table.dim(0), first = part.first;
  const std::int64_t bytes = table.dim(1) * static_cast<std::int64_t>(size_of(table.dtype()));
  const std::int32_t* token = tokens.data<std::int32_t>();
  const char* from = static_cast<const char*>(table.raw());
  char* to = static_cast<char*>(y.raw());
  if (bytes == 0) return;
  parallel_rows(tokens.numel(), table.dim(1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t row = token[t] - first;
      if (row >= 0 && row < rows)
        std::memcpy(to + t * bytes, from + row * bytes, static_cast<std::size_t>(bytes));
      else
        std::memset(to + t * bytes, 0, static_cast<std::size_t>(bytes));
    }
  });
}

void embedding_backward(const Tensor& tokens, const Tensor& dy, const VocabPart& part,
                        const Target& d_table) {
  check_tokens(tokens, part.size);
  if (!d_table.accumulate) {
    char* bytes = static_cast<char*>(d_table.into.raw());
    const std::int64_t width = static_cast<std::int64_t>(size_of(d_table.into.dtype()));
    parallel_flat(d_table.into.numel(), [&](std::int64_t begin, std::int64_t end) {
      std::memset(bytes + begin * width, 0, static_cast<std::size_t>((end - begin) * width));
    });
  }
  visit_compute(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (d_table.into.dtype() == DType::kF64)
      add_rows<T, double>(tokens, dy, part.first, d_table.into);
    else
      add_rows<T, Real<T>>(tokens, dy, part.first, d_table.into);
  });
}

}  // namespace dew::kernels::cpu
