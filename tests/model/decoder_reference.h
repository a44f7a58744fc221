// The decoder once more, in plain loops over doubles, written from the papers and sharing no code with the
// library: pre-norm layers of attention (rotary positions in half rotation, grouped heads, causal window) and
// SwiGLU.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dew::test {

struct ReferenceDecoder {
  std::size_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_width = 0, mlp = 0, vocab = 0;
  std::vector<std::size_t> windows;  ///< one a layer; 0 sees all before it
  double theta = 10000, eps = 1e-5;
  bool tied = false;
  std::map<std::string, std::vector<double>> weights{};

  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  /// Mean cross-entropy of the targets >= 0 over samples of `length` tokens each.
  double loss(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
              std::size_t length, std::size_t first_position) const {
    double sum = 0, count = 0;
    for (std::size_t begin = 0; begin < tokens.size(); begin += length) {
      Rows x;
      for (std::size_t t = 0; t < length; ++t)
        x.push_back(embedded(static_cast<std::size_t>(tokens[begin + t])));
      for (std::size_t layer = 0; layer < layers; ++layer) run_layer(x, layer, first_position);
      for (std::size_t t = 0; t < length; ++t) {
        if (targets[begin + t] < 0) continue;
        const Row logits = product(tied ? "embed.weight" : "head.weight", normed("head.norm", x[t]));
        double total = 0;
        for (double logit : logits) total += std::exp(logit);
        sum += std::log(total) - logits[static_cast<std::size_t>(targets[begin + t])];
        count += 1;
      }
    }
    return sum / count;
  }

 private:
  Row embedded(std::size_t token) const {
    const Row& table = weights.at("embed.weight");
    Row x(width);
    for (std::size_t d = 0; d < width; ++d) x[d] = table[token * width + d];
    return x;
  }

  Row normed(const std::string& name, const Row& x) const {
    double squares = 0;
    for (double value : x) squares += value * value;
    const double rms = std::sqrt(squares / static_cast<double>(x.size()) + eps);
    Row y = x;
    for (std::size_t d = 0; d < x.size(); ++d) y[d] = x[d] / rms * weights.at(name)[d];
    return y;
  }

  /// W x with W [out, in] in row-major order.
  Row product(const std::string& name, const Row& x) const {
    const Row& w = weights.at(name);
    Row y(w.size() / x.size(), 0.0);
    for (std::size_t o = 0; o < y.size(); ++o)
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    return y;
  }

  void turn(Row& all_heads, std::size_t position) const {
    const std::size_t half = head_width / 2;
    for (std::size_t head = 0; head < all_heads.size(); head += head_width) {
      for (std::size_t i = 0; i < half; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_width);
        const double angle = static_cast<double>(position) * std::pow(theta, exponent);
        const double a = all_heads[head + i], b = all_heads[head + half + i];
        all_heads[head + i] = a * std::cos(angle) - b * std::sin(angle);
        all_heads[head + half + i] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }

  Row attended(const Row& q, const Rows& k, const Rows& v, std::size_t query, std::size_t window) const {
    Row o(heads * head_width, 0.0);
    const std::size_t first = window == 0 || query + 1 < window ? 0 : query + 1 - window;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at_q = h * head_width, at_kv = h / (heads / kv_heads) * head_width;
      Row weight;
      double total = 0;
      for (std::size_t key = first; key <= query; ++key) {
        double dot = 0;
        for (std::size_t i = 0; i < head_width; ++i) dot += q[at_q + i] * k[key][at_kv + i];
        weight.push_back(std::exp(dot / std::sqrt(static_cast<double>(head_width))));
        total += weight.back();
      }
      for (std::size_t key = first; key <= query; ++key)
        for (std::size_t i = 0; i < head_width; ++i)
          o[at_q + i] += weight[key - first] / total * v[key][at_kv + i];
    }
    return o;
  }

  static void add_to(Row& x, const Row& y) {
    for (std::size_t d = 0; d < x.size(); ++d) x[d] += y[d];
  }

  void run_layer(Rows& x, std::size_t layer, std::size_t first_position) const {
    const std::string name = "layers." + std::to_string(layer);
    Rows q, k, v;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row h = normed(name + ".attention.norm", x[t]);
      q.push_back(product(name + ".attention.wq", h));
      k.push_back(product(name + ".attention.wk", h));
      v.push_back(product(name + ".attention.wv", h));
      turn(q.back(), first_position + t);
      turn(k.back(), first_position + t);
    }
    for (std::size_t t = 0; t < x.size(); ++t)
      add_to(x[t], product(name + ".attention.wo", attended(q[t], k, v, t, windows[layer])));
    for (Row& row : x) {
      const Row h = normed(name + ".mlp.norm", row);
      Row gate = product(name + ".mlp.gate", h);
      const Row up = product(name + ".mlp.up", h);
      for (std::size_t f = 0; f < gate.size(); ++f) gate[f] *= up[f] / (1 + std::exp(-gate[f]));
      add_to(row, product(name + ".mlp.down", gate));
    }
  }
};

}  // namespace dew::test
