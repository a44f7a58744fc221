// Speed of every kernel on this machine, f32 and f64: GFLOP/s beside the library's own matrix product
// measured in the same run, or GB/s beside a plain copy. The share is that of this reference.
//   OMP_NUM_THREADS=N bench_kernels [gemm|attention|rest]...
#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/timer.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/norm.h"
#include "kernels/pointwise.h"
#include "kernels/random.h"
#include "kernels/reduce.h"
#include "kernels/rope.h"
#include "tensor/copy.h"

namespace {

using namespace dew;
using namespace dew::kernels;

using Work = std::function<void()>;

/// Best seconds of each of several works, run in turn so that a disturbance meets them alike.
std::vector<double> best_seconds(const std::vector<Work>& works) {
  constexpr double kBudget = 0.4;  // seconds for each work
  constexpr int kFewest = 5;
  std::vector<double> best(works.size(), 1e30);
  for (const Work& work : works) work();
  const double start = steady_seconds();
  for (int round = 0;
       round < kFewest || steady_seconds() - start < kBudget * static_cast<double>(works.size()); ++round)
    for (std::size_t i = 0; i < works.size(); ++i) {
      const double begin = steady_seconds();
      works[i]();
      best[i] = std::min(best[i], steady_seconds() - begin);
    }
  return best;
}

class Bench {
 public:
  Tensor tensor(const Shape& shape, DType dtype) {
    Tensor made = Tensor::empty(shape, dtype, stream_, Owner::kActivations);
    for (std::int64_t i = 0; i < made.numel(); ++i) {
      const double value = philox(7, static_cast<std::uint64_t>(i), 0)[0] * 0x1p-31 - 1;
      visit_float(dtype,
                  [&](auto zero) { made.data<decltype(zero)>()[i] = static_cast<decltype(zero)>(value); });
    }
    return made;
  }

  void gemm_rows(DType dtype) {
    std::printf("\n%s products of T tokens: own GFLOP/s, library's, share\n",
                std::string(name_of(dtype)).c_str());
    for (const auto& [tokens, out, in] : {Extents{2048, 384, 384},
                                          {2048, 1024, 384},
                                          {2048, 384, 1024},
                                          {2048, 256, 384},
                                          {2048, 768, 768},
                                          {2048, 3072, 768},
                                          {2048, 768, 3072},
                                          {512, 50304, 768}}) {
      if (dtype == DType::kF64 && out > 1024) continue;
      gemm_row("y = x W^T", dtype, {tokens, out, in}, Transpose::kNo, Transpose::kYes, false);
      gemm_row("dx = g W", dtype, {tokens, in, out}, Transpose::kNo, Transpose::kNo, false);
      gemm_row("dW += g^T x", dtype, {out, in, tokens}, Transpose::kYes, Transpose::kNo, true);
    }
  }

  void attention_rows(DType dtype) {
    std::printf(
        "\n%s causal attention: forward and backward GFLOP/s (2 and 5 products), share of %.1f of a "
        "product\n",
        std::string(name_of(dtype)).c_str(), product_rate(dtype));
    struct Row {
      std::int64_t samples, length, heads, kv_heads, width, window;
    };
    for (const Row& r : {Row{8, 256, 6, 6, 64, 0},
                         {1, 2048, 6, 6, 64, 0},
                         {4, 1024, 12, 12, 64, 0},
                         {1, 2048, 8, 2, 128, 0},
                         {1, 2048, 6, 6, 64, 256},
                         {8, 256, 12, 12, 32, 0},
                         {16, 64, 4, 4, 16, 0}}) {
      const Shape queries{r.samples, r.length, r.heads, r.width},
          keys{r.samples, r.length, r.kv_heads, r.width};
      const Tensor q = tensor(queries, dtype), k = tensor(keys, dtype), v = tensor(keys, dtype),
                   d_o = tensor(queries, dtype);
      const Tensor o = tensor(queries, dtype), dq = tensor(queries, dtype), dk = tensor(keys, dtype);
      const Tensor dv = tensor(keys, dtype), sums = tensor({r.samples, r.heads, r.length}, dtype);
      const AttentionMask mask{.window = r.window};
      const Work forward = [&] { attention_forward(stream_, q, k, v, mask, {}, o, sums); };
      const Work backward = [&] {
        attention_backward(stream_, q, k, v, mask, {}, o, sums, d_o, {dq}, {dk}, {dv});
      };
      const double forward_flops = flops_of(forward), backward_flops = flops_of(backward);
      const std::vector<double> s = best_seconds({forward, backward, library_product(dtype)});
      const double rate = kReferenceFlops / s[2];
      std::printf(
          "B %2ld L %4ld H %2ld/%-2ld K %3ld window %4ld  %7.1f %4.0f %%  %7.1f %4.0f %%  both %4.0f %%\n",
          r.samples, r.length, r.heads, r.kv_heads, r.width, r.window, forward_flops / s[0] / 1e9,
          100 * forward_flops / s[0] / rate, backward_flops / s[1] / 1e9, 100 * backward_flops / s[1] / rate,
          100 * (forward_flops + backward_flops) / (s[0] + s[1]) / rate);
    }
  }

  void other_rows(DType dtype) {
    constexpr std::int64_t kTokens = 2048, kWidth = 384, kInner = 1024, kVocab = 256;
    const Tensor x = tensor({kTokens, kWidth}, dtype), y = tensor({kTokens, kWidth}, dtype),
                 w = tensor({kWidth}, dtype);
    const Tensor z = tensor({kTokens, kWidth}, dtype), root = tensor({kTokens}, dtype),
                 dw = tensor({kWidth}, dtype);
    const Tensor gate = tensor({kTokens, kInner}, dtype), up = tensor({kTokens, kInner}, dtype);
    const Tensor inner = tensor({kTokens, kInner}, dtype), d_gate = tensor({kTokens, kInner}, dtype);
    const Tensor heads = x.reshape({8, 256, 6, 64}), turned = y.reshape({8, 256, 6, 64}),
                 table = tensor({256, 64}, dtype);
    const Tensor logits = tensor({kTokens, kVocab}, dtype), rows = tensor({kVocab, kWidth}, dtype);
    const Tensor loss = tensor({1}, DType::kF64),
                 tokens = Tensor::zeros({kTokens}, DType::kI32, stream_, Owner::kBuffers);
    for (std::int64_t t = 0; t < kTokens; ++t)
      tokens.data<std::int32_t>()[t] = static_cast<std::int32_t>(t * 7 % kVocab);
    const Tensor many = tensor({1 << 22}, dtype), moment = tensor({1 << 22}, dtype),
                 square = tensor({1 << 22}, dtype);
    const Tensor gradient = tensor({1 << 22}, dtype);
    fill(stream_, square, 1);
    std::printf("\n%s, GB/s (each byte once) and share of a copy of the same bytes\n",
                std::string(name_of(dtype)).c_str());
    row("add", [&] { add(stream_, x, y, z); });
    row("swiglu_forward", [&] { swiglu_forward(stream_, gate, up, inner); });
    row("swiglu_backward", [&] { swiglu_backward(stream_, gate, up, inner, {d_gate}, {d_gate}); });
    row("rms_norm_forward", [&] { rms_norm_forward(stream_, x, w, 1e-6, y, root); });
    row("rms_norm_backward", [&] { rms_norm_backward(stream_, x, w, root, y, {z}, {dw}); });
    row("rope", [&] { rope(stream_, heads, table, {}, RopeDirection::kForward, {turned}); });
    row("embedding_forward", [&] { embedding_forward(stream_, tokens, rows, x); });
    row("embedding_backward", [&] { embedding_backward(stream_, tokens, x, {rows}); });
    row("cross_entropy", [&] { cross_entropy_in_place(stream_, logits, tokens, 1, loss); });
    row("adamw", [&] { adamw(stream_, {.lr = 1e-3}, gradient, many, moment, square); });
    row("sum_of_squares", [&] { sum_of_squares(stream_, many); });
    row("lerp", [&] { lerp(stream_, many, gradient, 0.999); });
    row("fill_normal", [&] { fill_normal(stream_, 1, 0, 1, many); });
  }

 private:
  struct Extents {
    std::int64_t m, n, k;
  };
  static constexpr std::int64_t kReferenceSide = 768;
  static constexpr double kReferenceFlops = 2.0 * kReferenceSide * kReferenceSide * kReferenceSide;

  static void library(DType dtype, Extents x, bool ta, bool tb, bool add, const Tensor& a, const Tensor& b,
                      const Tensor& c) {
    const std::int64_t lda = ta ? x.m : x.k, ldb = tb ? x.k : x.n;
    const auto i = [](std::int64_t value) { return static_cast<blasint>(value); };
    if (dtype == DType::kF32) {
      dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', x.m, x.n, x.k, 1, a.data<float>(), lda, b.data<float>(), ldb,
                 add ? 1 : 0, c.data<float>(), x.n);
    } else {
      cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, i(x.m),
                  i(x.n), i(x.k), 1, a.data<double>(), i(lda), b.data<double>(), i(ldb), add ? 1 : 0,
                  c.data<double>(), i(x.n));
    }
  }

  Work library_product(DType dtype) {
    const Tensor a = tensor({kReferenceSide, kReferenceSide}, dtype),
                 c = tensor({kReferenceSide, kReferenceSide}, dtype);
    return [=] {
      library(dtype, {kReferenceSide, kReferenceSide, kReferenceSide}, false, false, false, a, a, c);
    };
  }
  double product_rate(DType dtype) {
    return kReferenceFlops / best_seconds({library_product(dtype)})[0] / 1e9;
  }

  double flops_of(const Work& work) {
    stream_.profile().clear();
    work();
    return stream_.profile().flops();
  }

  void gemm_row(const char* name, DType dtype, Extents x, Transpose ta, Transpose tb, bool add) {
    const bool a_turned = ta == Transpose::kYes, b_turned = tb == Transpose::kYes;
    const Tensor a = tensor(a_turned ? Shape{x.k, x.m} : Shape{x.m, x.k}, dtype);
    const Tensor b = tensor(b_turned ? Shape{x.n, x.k} : Shape{x.k, x.n}, dtype),
                 c = tensor({x.m, x.n}, dtype);
    const std::vector<double> s =
        best_seconds({[&] {
                        gemm(stream_, a, ta, b, tb, {c, add});
                      },
                      [&] { library(dtype, x, a_turned, b_turned, add, a, b, c); }});
    const double flops = 2.0 * static_cast<double>(x.m) * static_cast<double>(x.n) * static_cast<double>(x.k);
    std::printf("%-12s %5ld x %5ld x %5ld  %7.1f %7.1f %4.0f %%\n", name, x.m, x.n, x.k, flops / s[0] / 1e9,
                flops / s[1] / 1e9, 100 * s[1] / s[0]);
  }

  void row(const char* name, const Work& work) {
    stream_.profile().clear();
    work();
    double bytes = 0;
    for (const KernelTotals& totals : stream_.profile().kinds) bytes += totals.bytes;
    const std::int64_t half = std::max<std::int64_t>(static_cast<std::int64_t>(bytes / 8), 1);
    const Tensor from = tensor({half}, DType::kF32), to = tensor({half}, DType::kF32);
    const std::vector<double> s = best_seconds({work, [&] { copy(stream_, from, to); }});
    std::printf("%-20s %7.1f GB/s  %7.1f us  %4.0f %%\n", name, bytes / s[0] / 1e9, s[0] * 1e6,
                100 * s[1] / s[0]);
  }

  Allocator allocator_{Device{}};
  Stream stream_{allocator_};
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  const auto runs = [&](const char* part) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), part) != wanted.end();
  };
  Bench bench;
  for (DType dtype : {DType::kF32, DType::kF64}) {
    if (runs("gemm")) bench.gemm_rows(dtype);
    if (runs("attention")) bench.attention_rows(dtype);
    if (runs("rest")) bench.other_rows(dtype);
  }
}
