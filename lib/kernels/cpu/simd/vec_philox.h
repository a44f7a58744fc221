// Philox4x32-10 (base/philox.h) on eight counters at once.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace dew::kernels::cpu::DEW_ISA {

/// The four output words of eight blocks, each below 2^32.
struct PhiloxWords {
  Words c0, c1, c2, c3;
};

/// The blocks of the counters (low, high), (low + 1, high), ..., (low + 7, high); the low ones must not wrap.
[[gnu::always_inline]] inline PhiloxWords philox(std::uint64_t key, std::uint64_t low, std::uint64_t high) {
  const Words mask = broadcast_word(0xFFFFFFFF);
  const Words multiplier0 = broadcast_word(0xD2511F53), multiplier1 = broadcast_word(0xCD9E8D57);
  const Words counter = count_from(low);
  Words c0 = counter & mask, c1 = shift_right<32>(counter);
  Words c2 = broadcast_word(high & 0xFFFFFFFF), c3 = broadcast_word(high >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Words a = multiply_low(multiplier0, c0), b = multiply_low(multiplier1, c2);
    c0 = shift_right<32>(b) ^ c1 ^ broadcast_word(k0);
    c2 = shift_right<32>(a) ^ c3 ^ broadcast_word(k1);
    c1 = b & mask;
    c3 = a & mask;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

}  // namespace dew::kernels::cpu::DEW_ISA
