// bfloat16: the upper half of a float. Numbers are stored in it and computed with as floats.
#pragma once

#include <bit>
#include <cstdint>

namespace dew {

// NOLINTNEXTLINE(readability-identifier-naming): a number type, named as the built-in ones are
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  /// Rounded to nearest, ties to even, and a denormal number to 0, as processors with an instruction for it
  /// do; a NaN stays one.
  explicit bf16(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t size = word & 0x7FFFFFFFu, high = word >> 16;
    constexpr std::uint32_t kInfinity = 0x7F800000u, kSmallestNormal = 0x00800000u;
    if (size > kInfinity)
      bits = static_cast<std::uint16_t>(high | 0x40u);
    else if (size < kSmallestNormal)
      bits = static_cast<std::uint16_t>(high & 0x8000u);
    else
      bits = static_cast<std::uint16_t>((word + 0x7FFFu + (high & 1u)) >> 16);
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
