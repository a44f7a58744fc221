// Every op's derivative against central differences, at tiny sizes and at odd ones above a vector's width.
#include <gtest/gtest.h>

#include "autograd/attention.h"
#include "autograd/dropout.h"
#include "autograd/embedding.h"
#include "autograd/linear.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/rope.h"
#include "autograd/select_heads.h"
#include "kernels/rope.h"
#include "support/gradcheck.h"

namespace dew::test {
namespace {

constexpr ParamRef kFirst{0}, kSecond{1};

TEST(Linear, HasTheGradientsOfItsDifferences) {
  for (const auto& [tokens, in, out] : {std::array{1, 1, 1}, {3, 5, 2}, {5, 33, 17}, {2, 257, 33}}) {
    SCOPED_TRACE(testing::Message() << tokens << " x " << in << " x " << out);
    check_gradients({{{tokens, in}}, {{out, in}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                       return {linear(tape, v[0], kFirst)};
                     }});
  }
}

TEST(Linear, AddsUpAWeightUsedTwice) {
  check_gradients({{{3, 5}}, {{5, 5}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {linear(tape, linear(tape, v[0], kFirst), kFirst)};
                   }});
}

TEST(Linear, TakesAConstantInput) {
  check_gradients({{}, {{2, 3}}, [](Workbench& bench, Tape& tape, const Vars&) -> Vars {
                     return {linear(tape, {bench.random({4, 3}, 1), {}, -1}, kFirst)};
                   }});
}

/// Each op of several values or none wanted, with one input a constant.
TEST(Ops, TakeConstantsBesideWhatIsDifferentiated) {
  const Shape heads{1, 3, 2, 4};
  const auto constant = [](Workbench& bench, const Shape& shape) -> Var {
    return {bench.random(shape, 1), {}, -1};
  };
  check_gradients({{}, {{33}}, [&](Workbench& bench, Tape& tape, const Vars&) -> Vars {
                     return {rms_norm(tape, constant(bench, {5, 33}), kFirst, 1e-2)};
                   }});
  for (std::size_t place : {0, 1})
    check_gradients({{{3, 5}}, {}, [&](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
                       Vars in(2, constant(bench, {3, 5}));
                       in[place] = v[0];
                       return {swiglu(tape, in[0], in[1])};
                     }});
  for (std::size_t place : {0, 1, 2})
    check_gradients({{heads}, {}, [&](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
                       Vars in(3, constant(bench, heads));
                       in[place] = v[0];
                       return {attention(tape, in[0], in[1], in[2], {})};
                     }});
  check_gradients({{heads}, {}, [&](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
                     const Var turned = rope(tape, constant(bench, heads), bench.random({3, 4}, 2));
                     const Var chosen = select_heads(tape, turned, {1, 0}, {});
                     return {add(tape, v[0], chosen)};
                   }});
}

TEST(SelectHeads, HasTheGradientsOfItsDifferences) {
  for (const std::vector<std::int64_t>& list :
       {std::vector<std::int64_t>{1}, {2, 2, 0, 1, 2}, {0, 1, 2}, {}}) {
    SCOPED_TRACE(list.size());
    check_gradients({{{2, 3, 3, 5}}, {}, [&](Workbench&, Tape& tape, const Vars& v) -> Vars {
                       return {select_heads(tape, v[0], list, {}), v[0]};
                     }});
  }
}

TEST(RmsNorm, HasTheGradientsOfItsDifferences) {
  for (const auto& [tokens, width] : {std::array{1, 1}, {4, 5}, {5, 33}, {3, 257}}) {
    SCOPED_TRACE(testing::Message() << tokens << " x " << width);
    check_gradients({{{tokens, width}}, {{width}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                       return {rms_norm(tape, v[0], kFirst, 1e-2)};
                     }});
  }
}

TEST(RmsNorm, HasThemOverHeads) {
  check_gradients({{{2, 3, 2, 5}}, {{5}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {rms_norm(tape, v[0], kFirst, 1e-2)};
                   }});
}

TEST(LayerNorm, HasTheGradientsOfItsDifferences) {
  for (const auto& [tokens, width] : {std::array{1, 2}, {4, 5}, {5, 33}, {3, 257}}) {
    SCOPED_TRACE(testing::Message() << tokens << " x " << width);
    check_gradients(
        {{{tokens, width}}, {{width}, {width}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
           return {layer_norm(tape, v[0], kFirst, kSecond, 1e-2)};
         }});
    check_gradients({{{tokens, width}}, {{width}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                       return {layer_norm(tape, v[0], kFirst, std::nullopt, 1e-2)};
                     }});
  }
}

TEST(AddBias, HasTheGradientsOfItsDifferences) {
  for (const auto& [tokens, width] : {std::array{1, 1}, {4, 5}, {70, 33}}) {
    SCOPED_TRACE(testing::Message() << tokens << " x " << width);
    check_gradients({{{tokens, width}}, {{width}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                       return {add_bias(tape, v[0], kFirst), v[0]};
                     }});
  }
}

TEST(Gelu, HasTheGradientsOfItsDifferences) {
  for (kernels::Gelu kind : {kernels::Gelu::kExact, kernels::Gelu::kTanh})
    for (const auto& [tokens, width] : {std::array{1, 1}, {3, 5}, {3, 257}}) {
      SCOPED_TRACE(testing::Message() << tokens << " x " << width);
      check_gradients({{{tokens, width}}, {}, [kind](Workbench&, Tape& tape, const Vars& v) -> Vars {
                         return {gelu(tape, v[0], kind)};
                       }});
    }
}

TEST(Dropout, HasTheGradientsOfItsDifferences) {
  check_gradients({{{6, 33}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {dropout(tape, v[0], {7, 0.4}, {1, 3, 0, 0}), v[0]};
                   }});
}

TEST(Dropout, IsNothingWithoutDraws) {
  Workbench bench;
  const ParamViews none;
  Tape tape(bench.stream, none);
  const Var x{bench.random({2, 3}, 1), {}, -1};
  EXPECT_EQ(dropout(tape, x, {}, {0, 2, 0, 0}).value.raw(), x.value.raw());
}

TEST(Swiglu, HasTheGradientsOfItsDifferences) {
  for (const auto& [tokens, width] : {std::array{1, 1}, {3, 5}, {3, 257}}) {
    SCOPED_TRACE(testing::Message() << tokens << " x " << width);
    const Shape shape{tokens, width};
    check_gradients({{shape, shape}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                       return {swiglu(tape, v[0], v[1])};
                     }});
  }
}

TEST(Add, HasTheGradientsOfItsDifferences) {
  check_gradients({{{3, 33}, {3, 33}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {add(tape, v[0], v[1])};
                   }});
}

TEST(Reshape, HasTheGradientsOfItsDifferences) {
  check_gradients({{{3, 4}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {reshape(tape, v[0], {2, 3, 2})};
                   }});
}

TEST(Rope, HasTheGradientsOfItsDifferences) {
  for (const auto& [samples, length, heads, width] : {std::array{1, 1, 1, 2}, {2, 3, 2, 4}, {1, 5, 3, 34}}) {
    SCOPED_TRACE(testing::Message() << samples << " x " << length << " x " << heads << " x " << width);
    const std::int64_t l = length, w = width;
    check_gradients(
        {{{samples, length, heads, width}}, {}, [l, w](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
           RopeTables tables;
           return {rope(tape, v[0], tables.get(bench.stream, 7, l, w, {100}, DType::kF64))};
         }});
  }
}

TEST(RopeTables, AreMadeOnceForEachMeaning) {
  Workbench bench;
  RopeTables tables;
  const Tensor& first = tables.get(bench.stream, 2, 3, 4, {100}, DType::kF64);
  const Tensor& again = tables.get(bench.stream, 2, 3, 4, {100}, DType::kF64);
  const Tensor& shifted = tables.get(bench.stream, 3, 3, 4, {100}, DType::kF64);
  const Tensor& slower = tables.get(bench.stream, 2, 3, 4, {1000}, DType::kF64);
  const Tensor& stretched = tables.get(bench.stream, 2, 3, 4, {100, {8, 1, 4, 10}}, DType::kF64);
  const Tensor& narrow = tables.get(bench.stream, 2, 3, 4, {100}, DType::kF32);

  EXPECT_EQ(first.raw(), again.raw());
  EXPECT_FALSE(same_bits(first, shifted));
  EXPECT_FALSE(same_bits(first, slower));
  EXPECT_FALSE(same_bits(first, stretched));
  EXPECT_EQ(narrow.dtype(), DType::kF32);
  EXPECT_TRUE(same_bits(first.rows(1, 3), shifted.rows(0, 2))) << "position 3 is the same in both";
}

struct AttentionSizes {
  std::int64_t samples, queries, keys, heads, kv_heads, width;
};

void check_attention(const AttentionSizes& s, const kernels::AttentionMask& mask,
                     const std::vector<std::int32_t>& starts = {},
                     const kernels::AttentionDropout& dropout = {}) {
  SCOPED_TRACE(testing::Message() << s.queries << " queries, " << s.keys << " keys, " << s.heads << " heads, "
                                  << s.kv_heads << " kv heads, window " << mask.window);
  const Shape q{s.samples, s.queries, s.heads, s.width}, kv{s.samples, s.keys, s.kv_heads, s.width};
  check_gradients({{q, kv, kv}, {}, [&](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
                     kernels::AttentionMask whole = mask;
                     if (!starts.empty())
                       whole.starts = bench.ints(
                           {s.samples, static_cast<std::int64_t>(starts.size()) / s.samples}, starts);
                     return {attention(tape, v[0], v[1], v[2], whole, dropout)};
                   }});
}

TEST(Attention, HasTheGradientsOfItsDifferences) {
  check_attention({1, 1, 1, 1, 1, 2}, {});
  check_attention({2, 4, 4, 1, 1, 3}, {.causal = false});
  check_attention({2, 5, 5, 2, 2, 3}, {});
  check_attention({1, 37, 37, 1, 1, 5}, {});
}

TEST(Attention, HasThemInAWindow) {
  check_attention({1, 5, 5, 1, 1, 2}, {.window = 1});
  check_attention({1, 5, 5, 1, 1, 2}, {.window = 2});
  check_attention({1, 37, 37, 2, 1, 3}, {.window = 5});
}

TEST(Attention, HasThemWithGroupedHeads) {
  check_attention({2, 3, 3, 4, 2, 2}, {});
  check_attention({1, 4, 4, 6, 2, 2}, {.window = 2});
  check_attention({1, 4, 4, 3, 1, 2}, {.causal = false});
}

TEST(Attention, HasThemAtGlobalPositions) {
  check_attention({1, 3, 5, 2, 1, 2}, {.query_begin = 2, .key_begin = 0});
  check_attention({1, 4, 3, 1, 1, 2},
                  {.query_begin = 0, .key_begin = 2});  // the first two queries see no key
}

TEST(Attention, HasThemWithinDocuments) {
  check_attention({2, 5, 5, 2, 1, 3}, {}, {0, 0, 2, 3, 3, 0, 1, 1, 1, 1});
  check_attention({1, 4, 3, 1, 1, 2}, {.query_begin = 1, .key_begin = 2}, {0, 0, 2, 2, 4});
}

TEST(Attention, HasThemWithDroppedWeights) {
  check_attention({2, 5, 5, 2, 1, 3}, {}, {}, {{9, 0.3}, 1, 2});
  check_attention({1, 37, 37, 2, 1, 3}, {.window = 9}, {}, {{9, 0.5}, 0, 0});
}

TEST(Embedding, HasTheGradientsOfItsDifferences) {
  check_gradients({{}, {{5, 3}}, [](Workbench& bench, Tape& tape, const Vars&) -> Vars {
                     return {embedding(tape, bench.ints({2, 3}, {4, 0, 4, 1, 4, 0}), {}, kFirst)};
                   }});
}

TEST(Embedding, AddsUpATiedTable) {
  check_gradients({{}, {{5, 3}}, [](Workbench& bench, Tape& tape, const Vars&) -> Vars {
                     const Var x = embedding(tape, bench.ints({1, 4}, {4, 0, 2, 4}), {}, kFirst);
                     return {linear(tape, x, kFirst)};
                   }});
}

TEST(Ops, ComposeToTheGradientsOfAGatedLayer) {
  check_gradients({{{4, 3}}, {{3}, {5, 3}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     const Var h = rms_norm(tape, v[0], kFirst, 1e-2);
                     const Var up = linear(tape, h, kSecond);
                     return {add(tape, swiglu(tape, up, linear(tape, v[0], kSecond)), up), h};
                   }});
}

TEST(FanOut, AddsUpAValueUsedByTwoAndThreeOps) {
  check_gradients({{{3, 5}}, {{5}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     const Var h = rms_norm(tape, v[0], kFirst, 1e-2);
                     return {add(tape, v[0], h)};
                   }});
  check_gradients({{{3, 5}}, {{5, 5}, {5}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     const Var a = linear(tape, v[0], kFirst), b = rms_norm(tape, v[0], kSecond, 1e-2);
                     return {add(tape, swiglu(tape, a, b), v[0])};
                   }});
}

// What add hands over is one tensor under two names: a later addition to one of them must leave the other
// alone.
TEST(FanOut, KeepsGradientsApartThatBeganAsOneTensor) {
  check_gradients({{{3, 5}, {3, 5}}, {{5}, {5}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     const Var a = rms_norm(tape, v[0], kFirst, 1e-2),
                               b = rms_norm(tape, v[1], kSecond, 1e-2);
                     return {add(tape, add(tape, v[0], v[1]), swiglu(tape, a, b))};
                   }});
  check_gradients({{{2, 3}, {2, 3}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     const Var flat = reshape(tape, v[0], {3, 2}), other = reshape(tape, v[1], {3, 2});
                     const Var sum = add(tape, flat, other);
                     return {add(tape, sum, swiglu(tape, flat, sum)), sum};
                   }});
  check_gradients({{{2, 3}, {2, 3}}, {{3}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     const Var h = rms_norm(tape, v[1], kFirst, 1e-2);
                     return {add(tape, add(tape, v[0], v[1]), add(tape, v[0], h))};
                   }});
}

TEST(FanOut, AddsUpAnInputThatOneOpTakesTwice) {
  check_gradients(
      {{{3, 5}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars { return {add(tape, v[0], v[0])}; }});
  check_gradients({{{3, 5}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {swiglu(tape, v[0], v[0])};
                   }});
  check_gradients({{{1, 4, 2, 2}}, {}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
                     return {attention(tape, v[0], v[0], v[0], {}), v[0]};
                   }});
}

}  // namespace
}  // namespace dew::test
