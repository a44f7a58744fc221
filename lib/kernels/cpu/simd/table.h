// The leaf loops as function pointers, one table for each instruction set they are compiled for; the
// machine's best is chosen at run time, so that one build is fast on all. Leaves run on the calling thread
// and never throw.
#pragma once

#include <cstdint>

#include "base/bfloat16.h"
#include "kernels/cpu/simd/isa.h"

namespace dew::kernels::cpu {

/// Constants of one AdamW update, folded on the host in f64.
struct AdamWConstants {
  double gradient_scale = 1;
  double decay = 1;  ///< the weight's factor, 1 - lr weight_decay
  double beta1 = 0, one_minus_beta1 = 1;
  double beta2 = 0, one_minus_beta2 = 1;
  double step_size = 0;                ///< lr / (1 - beta1^step)
  double inverse_sqrt_correction = 1;  ///< 1 / sqrt(1 - beta2^step)
  double eps = 0;
};

/// Largest element and sum of exponentials of a row.
struct RowSum {
  double largest = 0;
  double sum = 0;  ///< of e^(x - largest)
};

/// Mean and 1 / sqrt(variance + eps) of a row.
template <class T>
struct Moments {
  T mean, inverse;
};

/// What dropout draws from: element e of a line is dropped where its word is below `bound`. The 32 elements
/// from 32 g on take word w of the Philox block (key; counter low = line 2^32 + 8 g + b, high = row) at 8 w +
/// b.
struct DropoutDraw {
  std::uint64_t key = 0;
  std::int64_t row = 0;
  double bound = 0;  ///< share dropped, times 2^32
  double scale = 1;  ///< of what stays
};

/// Loops over numbers stored as T = float, double or bf16 and computed in Real<T>. n counts elements; arrays
/// are unaligned and do not overlap unless said so.
template <class T>
struct SimdOps {
  /// y = a + b; y may be a or b.
  void (*add)(const T* a, const T* b, T* y, std::int64_t n);
  /// y = keep y + take x.
  void (*blend)(Real<T> keep, T* y, Real<T> take, const T* x, std::int64_t n);
  void (*swiglu_forward)(const T* gate, const T* up, T* y, std::int64_t n);
  void (*swiglu_backward)(const T* gate, const T* up, const T* dy, T* d_gate, bool add_gate, T* d_up,
                          bool add_up, std::int64_t n);
  /// y = (y if `accumulate`) + terms[0] + ... in that order, elements [begin, end); y may be terms[0].
  void (*sum_in_order)(const T* const* terms, std::int64_t count, T* y, bool accumulate, std::int64_t begin,
                       std::int64_t end);

  /// One row of D: y = x w / sqrt(mean(x^2) + eps); returns the inverse root.
  Real<T> (*rms_forward)(const T* x, const T* w, double eps, T* y, std::int64_t d);
  /// dx (+)= the gradient of a row; sums[j] += dy x inverse_rms.
  void (*rms_backward)(const T* x, const T* w, Real<T> inverse_rms, const T* dy, T* dx, bool accumulate,
                       Real<T>* sums, std::int64_t d);

  /// One row of D: y = (x - mean) / sqrt(variance + eps) w + b; b may be null.
  Moments<Real<T>> (*layer_norm_forward)(const T* x, const T* w, const T* b, double eps, T* y,
                                         std::int64_t d);
  /// dx (+)= the gradient of a row; weight_sums[j] += dy (x - mean) inverse and, unless null, bias_sums[j] +=
  /// dy.
  void (*layer_norm_backward)(const T* x, const T* w, Moments<Real<T>> moments, const T* dy, T* dx,
                              bool accumulate, Real<T>* weight_sums, Real<T>* bias_sums, std::int64_t d);

  /// x Phi(x), or its tanh form.
  void (*gelu_forward)(bool exact, const T* x, T* y, std::int64_t n);
  void (*gelu_backward)(bool exact, const T* x, const T* dy, T* dx, bool accumulate, std::int64_t n);

  /// y = x times the factors of the elements [begin, begin + n) of a line, or added to y; y may be x.
  void (*dropout_line)(const DropoutDraw& draw, std::int64_t line, std::int64_t begin, const T* x, T* y,
                       bool accumulate, std::int64_t n);

  /// Turns `heads` heads of 2 half elements by angles given by cos and sin [half]; y may be x unless
  /// `accumulate`.
  void (*rope_heads)(const T* x, const Real<T>* cosine, const Real<T>* sine, bool inverse, T* y,
                     bool accumulate, std::int64_t heads, std::int64_t half);
};

/// Loops over T = float or double alone: what masters, optimizers and losses need.
template <class T>
struct RealOps {
  void (*exp)(const T* x, T* y, std::int64_t n);
  void (*scale)(T* x, double factor, std::int64_t n);
  /// average += weight (value - average).
  void (*lerp)(T* average, const T* value, double weight, std::int64_t n);
  double (*sum_of_squares)(const T* x, std::int64_t n);

  RowSum (*log_sum_exp_row)(const T* x, std::int64_t n);
  /// The same, and x becomes e^(x - largest).
  RowSum (*exp_row)(T* x, std::int64_t n);

  void (*adamw)(const AdamWConstants& c, const T* gradient, T* w, T* m, T* v, std::int64_t n);
  /// x[i] = stddev z(key, begin + i) as kernels/random.h says.
  void (*fill_normal)(std::uint64_t key, std::int64_t begin, double stddev, T* x, std::int64_t n);
};

/// Between formats: y[j] += x[j], widened; y[j] = x[j], widened.
template <class From, class To>
struct Conversions {
  void (*add)(const From* x, To* y, std::int64_t n);
  void (*cast)(const From* x, To* y, std::int64_t n);
};

struct SimdTable {
  SimdOps<float> f32;
  SimdOps<double> f64;
  SimdOps<bf16> stored_bf16;
  RealOps<float> real_f32;
  RealOps<double> real_f64;
  Conversions<float, double> f32_to_f64;
  Conversions<bf16, float> bf16_to_f32;
  Conversions<bf16, double> bf16_to_f64;
  /// Rounded to nearest even and denormal numbers to 0; f64 by way of f32.
  void (*f32_to_bf16)(const float* x, bf16* y, std::int64_t n);
  void (*f64_to_bf16)(const double* x, bf16* y, std::int64_t n);
};

/// The table of one instruction set.
const SimdTable& simd_table(Isa isa);

/// The best table that this processor runs. Throws Error without AVX2 and FMA.
const SimdTable& simd_table();

template <class T>
const SimdOps<T>& ops_of(const SimdTable& table);
template <>
inline const SimdOps<float>& ops_of<float>(const SimdTable& table) {
  return table.f32;
}
template <>
inline const SimdOps<double>& ops_of<double>(const SimdTable& table) {
  return table.f64;
}

template <>
inline const SimdOps<bf16>& ops_of<bf16>(const SimdTable& table) {
  return table.stored_bf16;
}

template <class T>
const RealOps<T>& real_ops_of(const SimdTable& table);
template <>
inline const RealOps<float>& real_ops_of<float>(const SimdTable& table) {
  return table.real_f32;
}
template <>
inline const RealOps<double>& real_ops_of<double>(const SimdTable& table) {
  return table.real_f64;
}

/// The loops over T on this processor.
template <class T>
const RealOps<T>& real_ops() {
  return real_ops_of<T>(simd_table());
}
template <class T>
const SimdOps<T>& simd_ops() {
  return ops_of<T>(simd_table());
}

}  // namespace dew::kernels::cpu
