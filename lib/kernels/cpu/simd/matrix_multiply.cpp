// Products of f32 and f64: an inner product rounds once a step.
#include "kernels/cpu/simd/matrix_blocks.h"
#include "kernels/cpu/simd/matrix_leaves.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

template <class T>
struct RealArithmetic {
  using Element = T;
  using Result = T;
  using Left = Vec<T>;
  using Right = Vec<T>;
  using Sum = Vec<T>;
  static constexpr std::int64_t kLanes = Vec<T>::kLanes;

  [[gnu::always_inline]] static Sum none() { return zero<T>(); }
  [[gnu::always_inline]] static Left left(const T* p) { return broadcast(*p); }
  template <class Part>
  [[gnu::always_inline]] static Right right(const T* p, Part part) {
    return load(p, part);
  }
  [[gnu::always_inline]] static Sum add(Left a, Right b, Sum sum) { return fma(a, b, sum); }
  template <class Part>
  [[gnu::always_inline]] static void put(T* c, Sum sum, bool accumulate, Part part) {
    store(c, accumulate ? load(c, part) + sum : sum, part);
  }
};

}  // namespace

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
              Matrix<T> c, bool accumulate) {
  multiply_blocks<RealArithmetic<T>, Order::kPlain>({k, a, b, c, accumulate}, m, n);
}

template <class T>
void multiply_transposed(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
                         Matrix<T> c, bool accumulate) {
  multiply_blocks<RealArithmetic<T>, Order::kTransposed>({k, a, b, c, accumulate}, m, n);
}

template void multiply(std::int64_t, std::int64_t, std::int64_t, Matrix<const float>, Matrix<const float>,
                       Matrix<float>, bool);
template void multiply(std::int64_t, std::int64_t, std::int64_t, Matrix<const double>, Matrix<const double>,
                       Matrix<double>, bool);
template void multiply_transposed(std::int64_t, std::int64_t, std::int64_t, Matrix<const float>,
                                  Matrix<const float>, Matrix<float>, bool);
template void multiply_transposed(std::int64_t, std::int64_t, std::int64_t, Matrix<const double>,
                                  Matrix<const double>, Matrix<double>, bool);

}  // namespace dew::kernels::cpu::DEW_ISA
