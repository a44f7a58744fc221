// Matrix products of decoders, beside the library's of the same shape.
#include <cblas.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "base/text.h"
#include "kernels.h"
#include "kernels/gemm.h"

namespace dew::bench {
namespace {

/// oneDNN's general product, for formats that have no plain call.
Work primitive_product(Extents x, ProductForm form, const Tensor& a, const Tensor& b, const Tensor& c) {
  using dnnl::memory;
  const auto type = [](const Tensor& t) {
    return size_of(t.dtype()) == 2 ? memory::data_type::bf16 : memory::data_type::f32;
  };
  const auto strides = [](bool turned, std::int64_t rows, std::int64_t columns) {
    return turned ? memory::dims{1, rows} : memory::dims{columns, 1};
  };
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const memory::desc a_form({x.m, x.k}, type(a), strides(form.a_turned, x.m, x.k));
  const memory::desc b_form({x.k, x.n}, type(b), strides(form.b_turned, x.k, x.n));
  const memory::desc c_form({x.m, x.n}, type(c), strides(false, x.m, x.n));
  dnnl::post_ops sum;
  sum.append_sum(1);
  dnnl::primitive_attr attributes;
  if (form.adds) attributes.set_post_ops(sum);
  const dnnl::matmul product(
      dnnl::matmul::primitive_desc(dnnl::matmul::desc(a_form, b_form, c_form), attributes, engine));
  const memory a_memory(a_form, engine, a.raw()), b_memory(b_form, engine, b.raw()),
      c_memory(c_form, engine, c.raw());
  return [product, queue = dnnl::stream(engine), a_memory, b_memory, c_memory, a, b, c]() mutable {
    product.execute(queue,
                    {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}});
    queue.wait();
  };
}

void gemm_row(KernelBench& bench, DType dtype, const char* name, Extents x, ProductForm form) {
  const Tensor a = bench.tensor(form.a_turned ? Shape{x.k, x.m} : Shape{x.m, x.k}, dtype);
  const Tensor b = bench.tensor(form.b_turned ? Shape{x.n, x.k} : Shape{x.k, x.n}, dtype);
  const Tensor c = bench.tensor({x.m, x.n}, form.adds ? sums_of(dtype) : dtype);
  const auto turn = [](bool turned) { return turned ? kernels::Transpose::kYes : kernels::Transpose::kNo; };
  const Work ours = [&] {
    kernels::gemm(bench.stream(), a, turn(form.a_turned), b, turn(form.b_turned), {c, form.adds});
  };
  const std::vector<Measured> measured = bench.measure(dtype, {ours, library_product(x, form, a, b, c)});
  bench.print(
      name, std::to_string(x.m) + " x " + std::to_string(x.n) + " x " + std::to_string(x.k), measured[0],
      format("%.1f GFLOP/s, %.1f %% of the library's here", measured[0].flops / measured[0].seconds * 1e-9,
             100 * measured[1].seconds / measured[0].seconds));
}

}  // namespace

Work library_product(Extents x, ProductForm form, const Tensor& a, const Tensor& b, const Tensor& c) {
  const std::int64_t lda = form.a_turned ? x.m : x.k, ldb = form.b_turned ? x.k : x.n;
  const double beta = form.adds ? 1 : 0;
  if (a.dtype() == DType::kF32)
    return [=] {
      dnnl_sgemm(form.a_turned ? 'T' : 'N', form.b_turned ? 'T' : 'N', x.m, x.n, x.k, 1, a.data<float>(), lda,
                 b.data<float>(), ldb, static_cast<float>(beta), c.data<float>(), x.n);
    };
  if (a.dtype() != DType::kF64) return primitive_product(x, form, a, b, c);
  const auto i = [](std::int64_t value) { return static_cast<blasint>(value); };
  return [=] {
    cblas_dgemm(CblasRowMajor, form.a_turned ? CblasTrans : CblasNoTrans,
                form.b_turned ? CblasTrans : CblasNoTrans, i(x.m), i(x.n), i(x.k), 1, a.data<double>(),
                i(lda), b.data<double>(), i(ldb), beta, c.data<double>(), i(x.n));
  };
}

void gemm_rows(KernelBench& bench, DType dtype) {
  bench.heading(dtype, "products of T tokens, m x n x k");
  for (const auto& [tokens, out, in] : {Extents{2048, 384, 384},
                                        {2048, 1024, 384},
                                        {2048, 384, 1024},
                                        {2048, 256, 384},
                                        {2048, 768, 768},
                                        {2048, 3072, 768},
                                        {2048, 768, 3072},
                                        {512, 50304, 768}}) {
    if (dtype == DType::kF64 && out > 1024) continue;
    gemm_row(bench, dtype, "y = x W^T", {tokens, out, in}, {.b_turned = true});
    gemm_row(bench, dtype, "dx = g W", {tokens, in, out}, {});
    gemm_row(bench, dtype, "dW += g^T x", {out, in, tokens}, {.a_turned = true, .adds = true});
  }
}

}  // namespace dew::bench
