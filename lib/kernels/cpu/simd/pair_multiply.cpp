// Products of bf16 pairs by the processor's own instruction, and what is rounded for them.
#include "kernels/cpu/simd/matrix_blocks.h"
#include "kernels/cpu/simd/pair_table.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

/// Two products an element, summed in f32; c of C is rounded once.
template <class C>
struct PairArithmetic {
  using Element = Pair;
  using Result = C;
  using Left = __m512bh;
  using Right = __m512bh;
  using Sum = __m512;
  static constexpr std::int64_t kLanes = VecF::kLanes;

  [[gnu::always_inline]] static Sum none() { return _mm512_setzero_ps(); }
  /// Pairs are read where two bf16 lie, at any even address.
  [[gnu::always_inline]] static Left left(const Pair* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
  }
  [[gnu::always_inline]] static Right right(const Pair* p, AllLanes) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
  }
  [[gnu::always_inline]] static Right right(const Pair* p, FirstLanes part) {
    return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi32(first_lanes_f(part.count), p));
  }
  [[gnu::always_inline]] static Sum add(Left a, Right b, Sum sum) { return _mm512_dpbf16_ps(sum, a, b); }
  template <class Part>
  [[gnu::always_inline]] static void put(C* c, Sum sums, bool accumulate, Part part) {
    const VecF sum{sums};
    store(c, accumulate ? load(c, part) + sum : sum, part);
  }
};

template <class C, Order order>
void product(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const Pair> a, Matrix<const Pair> b,
             Matrix<C> c, bool accumulate) {
  multiply_blocks<PairArithmetic<C>, order>({k, a, b, c, accumulate}, m, n);
}

void narrow_rows(std::int64_t rows, std::int64_t n, Matrix<const float> x, Matrix<bf16> y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < n; j += VecF::kLanes)
      store(y.at(r, j).first, load(x.at(r, j).first), AllLanes{});
}

void narrow_pairs(std::int64_t rows, std::int64_t n, Matrix<const float> x, Matrix<Pair> y) {
  for (std::int64_t r = 0; r < rows; r += 2)
    for (std::int64_t j = 0; j < n; j += VecF::kLanes) {
      const __m512i low = _mm512_cvtepu16_epi32(to_bf16(load(x.at(r, j).first)));
      const __m512i high =
          r + 1 < rows ? _mm512_cvtepu16_epi32(to_bf16(load(x.at(r + 1, j).first))) : _mm512_setzero_si512();
      _mm512_storeu_si512(y.at(r / 2, j).first, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

template <class C>
constexpr PairProducts<C> kProducts{.multiply = product<C, Order::kPlain>,
                                    .multiply_transposed = product<C, Order::kTransposed>};

}  // namespace

extern const PairTable kPairTable;
constexpr PairTable kPairTable{.wide = kProducts<float>,
                               .narrow = kProducts<bf16>,
                               .narrow_rows = narrow_rows,
                               .narrow_pairs = narrow_pairs};

}  // namespace dew::kernels::cpu::DEW_ISA
