// Attention: forward, backward and both, and windows beside all pairs in the same turns.
#include "kernels/attention.h"

#include "base/text.h"
#include "kernels.h"

namespace dew::bench {
namespace {

struct Call {
  std::int64_t samples, length, heads, kv_heads, width;
};

std::string text_of(const Call& call) {
  return "B " + std::to_string(call.samples) + " T " + std::to_string(call.length) + " H " +
         std::to_string(call.heads) + "/" + std::to_string(call.kv_heads) + " K " +
         std::to_string(call.width);
}

struct Directions {
  Work forward, backward;
};

/// The two calls on tensors of their own.
Directions directions(KernelBench& bench, DType dtype, const Call& call, std::int64_t window) {
  const Shape queries{call.samples, call.length, call.heads, call.width};
  const Shape keys{call.samples, call.length, call.kv_heads, call.width};
  const Tensor q = bench.tensor(queries, dtype), k = bench.tensor(keys, dtype), v = bench.tensor(keys, dtype);
  const Tensor o = bench.tensor(queries, dtype), d_o = bench.tensor(queries, dtype);
  const Tensor dq = bench.tensor(queries, dtype), dk = bench.tensor(keys, dtype),
               dv = bench.tensor(keys, dtype);
  const Tensor sums = bench.tensor({call.samples, call.heads, call.length}, sums_of(dtype));
  const kernels::AttentionMask mask{.window = window};
  Stream* stream = &bench.stream();
  return {[=] { kernels::attention_forward(*stream, q, k, v, mask, {}, o, sums); },
          [=] { kernels::attention_backward(*stream, q, k, v, mask, {}, o, sums, d_o, {dq}, {dk}, {dv}); }};
}

/// Rows of one shape with each window (0: all pairs, which comes first).
void rows_of(KernelBench& bench, DType dtype, const Call& call, const std::vector<std::int64_t>& windows) {
  std::vector<Work> works;
  for (const std::int64_t window : windows) {
    const Directions pair = directions(bench, dtype, call, window);
    works.push_back(pair.forward);
    works.push_back(pair.backward);
  }
  const std::vector<Measured> m = bench.measure(dtype, works);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto print = [&](const char* name, const Measured& own, const Measured& whole) {
      std::string shape = text_of(call);
      std::string more = format("%.1f GFLOP/s", own.flops / own.seconds * 1e-9);
      if (windows[i] > 0) {
        shape += " window " + std::to_string(windows[i]);
        more += format(", %.3f of causal time for %.3f of its FLOP", own.seconds / whole.seconds,
                       own.flops / whole.flops);
      }
      bench.print(name, shape, own, more);
    };
    print("attention_forward", m[2 * i], m[0]);
    print("attention_backward", m[2 * i + 1], m[1]);
    print("attention both", m[2 * i] + m[2 * i + 1], m[0] + m[1]);
  }
}

}  // namespace

void attention_rows(KernelBench& bench, DType dtype) {
  bench.heading(dtype, "causal attention: B samples, T positions, H query/kv heads, K head width");
  for (const Call& call : {Call{8, 256, 6, 6, 64},
                           {8, 256, 12, 12, 64},
                           {4, 1024, 12, 12, 64},
                           {1, 2048, 8, 2, 128},
                           {8, 256, 12, 12, 32},
                           {16, 64, 4, 4, 16}})
    rows_of(bench, dtype, call, {0});
  for (const std::int64_t length : {2048, 8192}) rows_of(bench, dtype, {1, length, 6, 6, 64}, {0, 1024, 256});
}

}  // namespace dew::bench
