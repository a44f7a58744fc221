// Attention as its formula says, in f64 with whole rows of scores: what the tests of the blockwise kernels
// compare with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace dew::test {

/// Extents of one call: B samples, L queries, S keys, H query heads, G key/value heads, K head width.
struct AttentionCase {
  std::int64_t b = 1, l = 1, s = 1, h = 1, g = 1, k = 1;
  kernels::AttentionMask mask{};
  std::vector<std::int32_t> starts{};  ///< [b, positions] of the documents; empty without
  std::vector<double> factors{};       ///< [b, h, l, s] of the weights, by dropout; empty without

  std::int64_t queries() const { return b * l * h * k; }
  std::int64_t keys() const { return b * s * g * k; }
  std::int64_t rows() const { return b * h * l; }
  std::int64_t query_at(std::int64_t ib, std::int64_t i, std::int64_t ih) const {
    return ((ib * l + i) * h + ih) * k;
  }
  std::int64_t key_at(std::int64_t ib, std::int64_t j, std::int64_t ih) const {
    return ((ib * s + j) * g + ih / (h / g)) * k;
  }
  double factor(std::int64_t ib, std::int64_t ih, std::int64_t i, std::int64_t j) const {
    return factors.empty() ? 1 : factors[((ib * h + ih) * l + i) * s + j];
  }
  bool sees(std::int64_t ib, std::int64_t i, std::int64_t j) const {
    if (!starts.empty()) {
      const std::int64_t positions = static_cast<std::int64_t>(starts.size()) / b;
      if (mask.key_begin + j < starts[ib * positions + mask.query_begin + i]) return false;
    }
    const std::int64_t distance = mask.query_begin + i - (mask.key_begin + j);
    if (mask.causal && distance < 0) return false;
    return mask.window == 0 || distance < mask.window;
  }
};

using Values = std::vector<double>;

struct AttentionInputs {
  Values q, k, v, d_o;
};

struct AttentionResults {
  Values o, log_sum_exp, dq, dk, dv;
  double most_used = 1;  ///< largest sum of probabilities that one key gets, at least 1; of the formula only
};

/// Probabilities of one query of one head over all keys, and the logarithm of their sum.
inline double probabilities(const AttentionCase& c, const AttentionInputs& in, std::int64_t ib,
                            std::int64_t ih, std::int64_t i, Values& p) {
  double largest = -INFINITY, sum = 0;
  for (std::int64_t j = 0; j < c.s; ++j) {
    double score = 0;
    for (std::int64_t e = 0; e < c.k; ++e)
      score += in.q[c.query_at(ib, i, ih) + e] * in.k[c.key_at(ib, j, ih) + e];
    p[j] = c.sees(ib, i, j) ? score / std::sqrt(static_cast<double>(c.k)) : -INFINITY;
    largest = std::max(largest, p[j]);
  }
  for (std::int64_t j = 0; j < c.s; ++j) {
    p[j] = largest == -INFINITY ? 0 : std::exp(p[j] - largest);
    sum += p[j];
  }
  if (sum > 0)
    for (double& x : p) x /= sum;
  return sum > 0 ? largest + std::log(sum) : -INFINITY;
}

inline AttentionResults attention_reference(const AttentionCase& c, const AttentionInputs& in) {
  AttentionResults out{Values(c.queries()), Values(c.rows()), Values(c.queries()), Values(c.keys()),
                       Values(c.keys())};
  const double scale = 1 / std::sqrt(static_cast<double>(c.k));
  Values p(c.s), used(c.b * c.s * c.g);
  for (std::int64_t ib = 0; ib < c.b; ++ib)
    for (std::int64_t ih = 0; ih < c.h; ++ih)
      for (std::int64_t i = 0; i < c.l; ++i) {
        const std::int64_t at = c.query_at(ib, i, ih);
        out.log_sum_exp[(ib * c.h + ih) * c.l + i] = probabilities(c, in, ib, ih, i, p);
        double mean = 0;
        for (std::int64_t j = 0; j < c.s; ++j)
          for (std::int64_t e = 0; e < c.k; ++e) {
            const double term = p[j] * c.factor(ib, ih, i, j) * in.v[c.key_at(ib, j, ih) + e];
            out.o[at + e] += term;
            mean += term * in.d_o[at + e];
          }
        for (std::int64_t j = 0; j < c.s; ++j) {
          const std::int64_t kv = c.key_at(ib, j, ih);
          used[kv / c.k] += p[j];
          double dp = 0;
          for (std::int64_t e = 0; e < c.k; ++e) dp += in.d_o[at + e] * in.v[kv + e];
          const double kept = c.factor(ib, ih, i, j);
          const double ds = p[j] * (kept * dp - mean) * scale;
          for (std::int64_t e = 0; e < c.k; ++e) {
            out.dv[kv + e] += p[j] * kept * in.d_o[at + e];
            out.dq[at + e] += ds * in.k[kv + e];
            out.dk[kv + e] += ds * in.q[at + e];
          }
        }
      }
  for (double x : used) out.most_used = std::max(out.most_used, x);
  return out;
}

}  // namespace dew::test
