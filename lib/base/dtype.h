// Element types of tensors: names, sizes and the switch from a run-time type to a compile-time one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/bfloat16.h"
#include "base/check.h"

namespace dew {

enum class DType : std::uint8_t { kF64, kF32, kBf16, kI64, kI32, kU8 };

/// Bytes of one element.
std::size_t size_of(DType dtype);

/// The name used in YAML and messages: "f64", "f32", "bf16", "i64", "i32", "u8".
std::string_view name_of(DType dtype);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::kF64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::kF32;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::kBf16;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::kI64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::kU8;
}

/// What numbers of a floating type are computed in: f32 for bf16, else the type itself.
constexpr DType real_of(DType dtype) {
  return dtype == DType::kBf16 ? DType::kF32 : dtype;
}

/// Calls f(T{}) with T = double or float. Throws Error for any other type.
template <class F>
decltype(auto) visit_float(DType dtype, F&& f) {
  DEW_CHECK(dtype == DType::kF64 || dtype == DType::kF32, name_of(dtype));
  if (dtype == DType::kF64) return std::forward<F>(f)(double{});
  return std::forward<F>(f)(float{});
}

/// The same with bf16 among them: the formats of activations.
template <class F>
decltype(auto) visit_compute(DType dtype, F&& f) {
  if (dtype == DType::kBf16) return std::forward<F>(f)(bf16{});
  return visit_float(dtype, std::forward<F>(f));
}

}  // namespace dew
