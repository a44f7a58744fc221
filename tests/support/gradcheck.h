// Derivatives of ops against central differences in f64. The scalar that is differentiated is the sum of all
// outputs times random weights, so that no symmetry of an op can hide an error.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "autograd/tape.h"
#include "support/near.h"

namespace dew::test {

/// Gradients of parameters in tensors of their own, by ParamRef. Memory starts as NaN: an op that adds where
/// it should overwrite shows.
class GradientStore final : public GradientSink {
 public:
  GradientStore(Workbench& bench, std::vector<Shape> shapes, DType dtype = DType::kF64)
      : bench_(bench), shapes_(std::move(shapes)), dtype_(dtype), gradients_(shapes_.size()) {}

  Target gradient(ParamRef param) override {
    const auto i = static_cast<std::size_t>(param.index);
    const bool written = gradients_.at(i).defined();
    if (!written) {
      const Numbers unset(static_cast<std::size_t>(shapes_[i].numel()), std::nan(""));
      gradients_[i] = bench_.tensor(shapes_[i], unset, dtype_, Owner::kGradients);
    }
    return {gradients_[i], written};
  }
  /// Undefined while nothing was written.
  const Tensor& of(int param) const { return gradients_.at(static_cast<std::size_t>(param)); }

 private:
  Workbench& bench_;
  std::vector<Shape> shapes_;
  DType dtype_;
  std::vector<Tensor> gradients_;
};

/// A function of inputs and bound parameters on a tape. Its inputs are replicated.
struct GradientCase {
  std::vector<Shape> inputs, params;
  std::function<Vars(Workbench&, Tape&, const Vars&)> run;
  bool seed_one = false;  ///< the only output is a loss that must be seeded with 1
};

namespace detail {

/// Differences have an error of kStep^2 / 6 of a third derivative of some tens, and of roundoff of a sum of
/// some tens over kStep: both below 1e-9. A wrong factor or index gives an error of the gradient's own size.
inline constexpr double kStep = 1e-5;
inline constexpr double kTolerance = 1e-8;
inline constexpr std::size_t kAllBelow = 64;  ///< larger tensors are sampled, and checked along a direction
inline constexpr std::size_t kSamples = 12;

class GradientCheck {
 public:
  explicit GradientCheck(const GradientCase& test) : case_(test) {
    std::uint64_t key = 100;
    for (const std::vector<Shape>* shapes : {&case_.inputs, &case_.params})
      for (const Shape& shape : *shapes) values_.push_back(draw(key++, shape.numel()));
  }

  void run() {
    const std::vector<Numbers> gradients = analytic();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool input = i < case_.inputs.size();
      SCOPED_TRACE((input ? "input " : "parameter ") + std::to_string(input ? i : i - case_.inputs.size()));
      ASSERT_EQ(gradients[i].size(), values_[i].size());
      check(values_[i], gradients[i]);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  Vars inputs(Tape& tape) {
    Vars in;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i)
      in.push_back(tape.input(bench_.tensor(case_.inputs[i], values_[i]), {}));
    return in;
  }
  ParamViews params(GradientSink* sink) {
    ParamViews views;
    for (std::size_t i = 0; i < case_.params.size(); ++i)
      views.values.push_back(bench_.tensor(case_.params[i], values_[case_.inputs.size() + i]));
    views.gradients = sink;
    return views;
  }
  Numbers weights(std::size_t output, std::int64_t n) const {
    return case_.seed_one ? Numbers{1.0} : draw(200 + output, n);
  }

  double scalar() {
    const ParamViews bound = params(nullptr);
    Tape tape(bench_.stream, bound);
    const Vars outs = case_.run(bench_, tape, inputs(tape));
    double sum = 0;
    for (std::size_t o = 0; o < outs.size(); ++o) {
      const Numbers y = numbers(outs[o].value), r = weights(o, outs[o].value.numel());
      sum = std::inner_product(y.begin(), y.end(), r.begin(), sum);
    }
    return sum;
  }

  std::vector<Numbers> analytic() {
    GradientStore store(bench_, case_.params);
    const ParamViews bound = params(&store);
    Tape tape(bench_.stream, bound);
    const Vars in = inputs(tape);
    const Vars outs = case_.run(bench_, tape, in);
    std::vector<Seed> seeds;
    for (std::size_t o = 0; o < outs.size(); ++o)
      seeds.push_back({outs[o], bench_.tensor(outs[o].value.shape(), weights(o, outs[o].value.numel()))});
    tape.backward(seeds, bound, WeightMode::kNow, nullptr);
    EXPECT_EQ(tape.size(), 0u);
    std::vector<Numbers> all;
    for (const Var& var : in) {
      const Tensor gradient = tape.take_gradient(var);
      EXPECT_TRUE(gradient.defined());
      if (!gradient.defined()) return std::vector<Numbers>(values_.size());
      EXPECT_EQ(gradient.shape(), var.value.shape());
      all.push_back(numbers(gradient));
    }
    for (std::size_t i = 0; i < case_.params.size(); ++i) {
      const Tensor& gradient = store.of(static_cast<int>(i));
      EXPECT_TRUE(gradient.defined());
      all.push_back(gradient.defined() ? numbers(gradient) : Numbers{});
    }
    return all;
  }

  /// The derivative along `direction` at the values.
  double slope(Numbers& values, const Numbers& direction) {
    const Numbers middle = values;
    const auto move = [&](double step) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = middle[i] + step * direction[i];
      return scalar();
    };
    const double above = move(kStep), below = move(-kStep);
    values = middle;
    return (above - below) / (2 * kStep);
  }

  void check(Numbers& values, const Numbers& gradient) {
    const std::size_t n = values.size(), stride = n <= kAllBelow ? 1 : (n - 1) / (kSamples - 1);
    for (std::size_t i = 0; i < n && !testing::Test::HasFatalFailure(); i += stride)
      check_element(values, gradient, i);
    if (n <= kAllBelow || testing::Test::HasFatalFailure()) return;
    check_element(values, gradient, n - 1);
    const Numbers direction = draw(300, static_cast<std::int64_t>(n));
    double expected = 0, size = 1;
    for (std::size_t i = 0; i < n; ++i) {
      expected += gradient[i] * direction[i];
      size += std::abs(gradient[i] * direction[i]);
    }
    ASSERT_NEAR(slope(values, direction), expected, kTolerance * size) << "along a direction";
  }
  void check_element(Numbers& values, const Numbers& gradient, std::size_t i) {
    Numbers unit(values.size(), 0.0);
    unit[i] = 1;
    ASSERT_NEAR(gradient[i], slope(values, unit), kTolerance * std::max(1.0, std::abs(gradient[i])))
        << "element " << i;
  }

  const GradientCase& case_;
  Workbench bench_;
  std::vector<Numbers> values_;
};

}  // namespace detail

/// Checks the gradient of every input and every parameter.
inline void check_gradients(const GradientCase& test) {
  detail::GradientCheck(test).run();
}

}  // namespace dew::test
