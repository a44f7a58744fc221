// Declarations of the leaf loops of one instruction set; what they do stands in table.h, under the same
// names.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void add(const T* a, const T* b, T* y, std::int64_t n);
template <class T>
void blend(Real<T> keep, T* y, Real<T> take, const T* x, std::int64_t n);
template <class T>
void exp(const T* x, T* y, std::int64_t n);
template <class T>
void scale(T* x, double factor, std::int64_t n);
template <class T>
void lerp(T* average, const T* value, double weight, std::int64_t n);
template <class T>
void swiglu_forward(const T* gate, const T* up, T* y, std::int64_t n);
template <class T>
void swiglu_backward(const T* gate, const T* up, const T* dy, T* d_gate, bool add_gate, T* d_up, bool add_up,
                     std::int64_t n);

template <class T>
void sum_in_order(const T* const* terms, std::int64_t count, T* y, bool accumulate, std::int64_t begin,
                  std::int64_t end);
template <class T>
double sum_of_squares(const T* x, std::int64_t n);
template <class T, class R>
void add_widened(const T* x, R* y, std::int64_t n);
template <class From, class To>
void cast(const From* x, To* y, std::int64_t n);

template <class T>
Real<T> rms_forward(const T* x, const T* w, double eps, T* y, std::int64_t d);
template <class T>
void rms_backward(const T* x, const T* w, Real<T> inverse_rms, const T* dy, T* dx, bool accumulate,
                  Real<T>* sums, std::int64_t d);

template <class T>
Moments<Real<T>> layer_norm_forward(const T* x, const T* w, const T* b, double eps, T* y, std::int64_t d);
template <class T>
void layer_norm_backward(const T* x, const T* w, Moments<Real<T>> moments, const T* dy, T* dx,
                         bool accumulate, Real<T>* weight_sums, Real<T>* bias_sums, std::int64_t d);

template <class T>
void gelu_forward(bool exact, const T* x, T* y, std::int64_t n);
template <class T>
void gelu_backward(bool exact, const T* x, const T* dy, T* dx, bool accumulate, std::int64_t n);

template <class T>
void dropout_line(const DropoutDraw& draw, std::int64_t line, std::int64_t begin, const T* x, T* y,
                  bool accumulate, std::int64_t n);

template <class T>
void rope_heads(const T* x, const Real<T>* cosine, const Real<T>* sine, bool inverse, T* y, bool accumulate,
                std::int64_t heads, std::int64_t half);

template <class T>
RowSum log_sum_exp_row(const T* x, std::int64_t n);
template <class T>
RowSum exp_row(T* x, std::int64_t n);

template <class T>
void adamw(const AdamWConstants& c, const T* gradient, T* w, T* m, T* v, std::int64_t n);
template <class T>
void fill_normal(std::uint64_t key, std::int64_t begin, double stddev, T* x, std::int64_t n);

}  // namespace dew::kernels::cpu::DEW_ISA
