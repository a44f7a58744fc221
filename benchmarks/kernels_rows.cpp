// Kernels on the rows of activations: norms, MLPs, rotary positions, embedding, loss.
#include "base/text.h"
#include "kernels.h"
#include "kernels/bias.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/heads.h"
#include "kernels/layer_norm.h"
#include "kernels/norm.h"
#include "kernels/pointwise.h"
#include "kernels/rope.h"

namespace dew::bench {
namespace {

using namespace kernels;

constexpr std::int64_t kTokens = 2048, kWidth = 384, kInner = 1024;
constexpr double kEps = 1e-5;

std::string text_of(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

void norms(KernelBench& bench, DType dtype) {
  Stream& stream = bench.stream();
  const DType sums = sums_of(dtype);
  for (const std::int64_t width : {kWidth, 2 * kWidth}) {
    const std::string shape = text_of(kTokens, width);
    const Tensor x = bench.tensor({kTokens, width}, dtype), y = bench.tensor({kTokens, width}, dtype),
                 dx = bench.tensor({kTokens, width}, dtype);
    const Tensor weight = bench.tensor({width}, dtype), bias = bench.tensor({width}, dtype);
    const Tensor root = bench.tensor({kTokens}, sums), moments = bench.tensor({kTokens, 2}, sums);
    const Tensor d_weight = bench.tensor({width}, sums), d_bias = bench.tensor({width}, sums);
    bench.row(dtype, "rms_norm_forward", shape, [&] { rms_norm_forward(stream, x, weight, kEps, y, root); });
    bench.row(dtype, "rms_norm_backward", shape,
              [&] { rms_norm_backward(stream, x, weight, root, y, {dx}, {d_weight}); });
    bench.row(dtype, "layer_norm_forward", shape,
              [&] { layer_norm_forward(stream, x, weight, bias, kEps, y, moments); });
    bench.row(dtype, "layer_norm_backward", shape,
              [&] { layer_norm_backward(stream, x, weight, moments, y, {dx}, {d_weight}, {d_bias}); });
  }
}

void mlps(KernelBench& bench, DType dtype) {
  Stream& stream = bench.stream();
  const std::string shape = text_of(kTokens, kInner);
  const auto hidden = [&] { return bench.tensor({kTokens, kInner}, dtype); };
  const Tensor x = hidden(), up = hidden(), y = hidden(), dx = hidden(), d_up = hidden();
  bench.row(dtype, "swiglu_forward", shape, [&] { swiglu_forward(stream, x, up, y); });
  bench.row(dtype, "swiglu_backward", shape, [&] { swiglu_backward(stream, x, up, y, {dx}, {d_up}); });
  for (const Gelu kind : {Gelu::kExact, Gelu::kTanh}) {
    const std::string name = kind == Gelu::kExact ? "gelu" : "gelu_tanh";
    bench.row(dtype, name + "_forward", shape, [&] { gelu_forward(stream, kind, x, y); });
    bench.row(dtype, name + "_backward", shape, [&] { gelu_backward(stream, kind, x, y, {dx}); });
  }
  const Tensor bias = bench.tensor({kInner}, dtype), d_bias = bench.tensor({kInner}, sums_of(dtype));
  bench.row(dtype, "add_bias", shape, [&] { add_bias(stream, x, bias, y); });
  bench.row(dtype, "bias_backward", shape, [&] { bias_backward(stream, x, {d_bias}); });
}

void positions(KernelBench& bench, DType dtype) {
  Stream& stream = bench.stream();
  constexpr std::int64_t kLength = 256, kHeads = 6, kHeadWidth = 64, kSamples = kTokens / kLength;
  const Tensor x = bench.tensor({kTokens, kWidth}, dtype), y = bench.tensor({kTokens, kWidth}, dtype);
  const Dropout draw{.key = 5, .rate = 0.1};
  const TokenPlaces places{.length = kLength};
  bench.row(dtype, "dropout", text_of(kTokens, kWidth), [&] { dropout(stream, draw, places, x, {y}); });
  const Shape heads{kSamples, kLength, kHeads, kHeadWidth};
  const Tensor table = bench.tensor({kLength, kHeadWidth}, sums_of(dtype));
  const Tensor own = x.reshape(heads), turned = y.reshape(heads);
  const std::string shape = "8 x 256 x 6 x 64";
  bench.row(dtype, "rope", shape, [&] { rope(stream, own, table, {}, RopeDirection::kForward, {turned}); });
  bench.row(dtype, "rope inverse", shape,
            [&] { rope(stream, own, table, {}, RopeDirection::kInverse, {turned}); });
  const std::array<std::int64_t, 3> list{0, 2, 5};
  const Tensor chosen = bench.tensor({kSamples, kLength, 3, kHeadWidth}, dtype);
  bench.row(dtype, "select_heads", shape + ", 3 of 6", [&] { select_heads(stream, own, list, chosen); });
  bench.row(dtype, "select_heads_backward", shape + ", 3 of 6",
            [&] { select_heads_backward(stream, chosen, list, {turned}); });
}

void vocabulary(KernelBench& bench, DType dtype, std::int64_t tokens, std::int64_t vocab) {
  Stream& stream = bench.stream();
  const Tensor ids = bench.ids(tokens, vocab);
  {
    const std::string shape = text_of(tokens, kWidth) + " of " + std::to_string(vocab);
    const Tensor table = bench.tensor({vocab, kWidth}, dtype), y = bench.tensor({tokens, kWidth}, dtype);
    const Tensor d_table = bench.tensor({vocab, kWidth}, sums_of(dtype));
    bench.row(dtype, "embedding_forward", shape, [&] { embedding_forward(stream, ids, table, y); });
    bench.row(dtype, "embedding_backward", shape, [&] { embedding_backward(stream, ids, y, {d_table}); });
    bench.row(dtype, "embedding_backward +=", shape, [&] {
      embedding_backward(stream, ids, y, {d_table, true});
    });
  }
  if (!is_master(dtype)) return;  // logits of bf16 are f32
  const std::string shape = text_of(tokens, vocab);
  const Tensor logits = bench.tensor({tokens, vocab}, dtype), loss = bench.tensor({1}, DType::kF64);
  bench.row(dtype, "cross_entropy_loss", shape, [&] { cross_entropy_loss(stream, logits, ids, loss); });
  bench.row(dtype, "cross_entropy_in_place", shape,
            [&] { cross_entropy_in_place(stream, logits, ids, 1, loss); });
  const VocabPart whole{0, vocab};
  const Tensor numbers = bench.tensor({tokens, kPartNumbers}, DType::kF64);
  bench.row(dtype, "cross_entropy_part", shape,
            [&] { cross_entropy_part(stream, logits, ids, whole, numbers); });
  const Tensor all = numbers.reshape({1, tokens, kPartNumbers});
  bench.row(dtype, "joined_loss", shape, [&] { cross_entropy_joined_loss(stream, all, ids, loss); });
  bench.row(dtype, "joined_gradient", shape,
            [&] { cross_entropy_joined_gradient(stream, all, 0, ids, whole, 1, logits); });
}

}  // namespace

void row_kernels(KernelBench& bench, DType dtype) {
  bench.heading(dtype, "kernels on rows: tokens x width");
  norms(bench, dtype);
  mlps(bench, dtype);
  positions(bench, dtype);
  vocabulary(bench, dtype, kTokens, 256);
  vocabulary(bench, dtype, 1024, 50257);
}

}  // namespace dew::bench
