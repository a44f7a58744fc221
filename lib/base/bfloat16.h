// bfloat16: the upper half of a float. Numbers are stored in it and computed with as floats.
#pragma once

#include <bit>
#include <cstdint>

namespace dew {

// NOLINTNEXTLINE(readability-identifier-naming): a number type, named as the built-in ones are
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  /// Rounded to nearest, ties to even; a NaN stays one.
  explicit bf16(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    const bool is_nan = (word & 0x7FFFFFFFu) > 0x7F800000u;
    bits =
        static_cast<std::uint16_t>(is_nan ? word >> 16 | 0x40u : (word + 0x7FFFu + (word >> 16 & 1u)) >> 16);
  }
  /// By way of a float: rounded twice.
  explicit bf16(double x) : bf16(static_cast<float>(x)) {}
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

template <class T>
struct RealOf {
  using Type = T;
};
template <>
struct RealOf<bf16> {
  using Type = float;
};
/// What numbers stored as T are computed in: T, or float for bf16.
template <class T>
using Real = typename RealOf<T>::Type;

}  // namespace dew
