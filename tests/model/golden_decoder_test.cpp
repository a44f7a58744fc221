// The decoder in f64 against GPT-2, Llama-3 and Qwen3 as Hugging Face transformers computes them:
// scripts/golden_decoders.py wrote the files read here, with the same weights and tokens.
#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>

#include "support/tiny_models.h"

namespace dew::test {
namespace {

constexpr std::uint64_t kSeed = 7;

// Sums of up to some thousand terms in another order: roundoffs of 1.1e-16 add up to about 1e-13. A constant
// taken in f32 would show as 1e-8.
constexpr double kRelative = 1e-10;
// Some gradients are zero but for roundoff, since softmax does not see a shift (the biases of keys).
constexpr double kZeroGradient = 1e-4;

struct Golden {
  struct Gradient {
    Shape shape;
    double norm = 0;
    Numbers first;  ///< its first elements
  };

  std::string keys;
  std::int64_t rows = 0, length = 0, vocab = 0;
  double loss = 0;
  std::vector<Numbers> log_probabilities;  ///< [length, vocab] of the first row
  std::map<std::string, Gradient> gradients;
};

template <typename T>
std::vector<T> all_of(std::istream& line) {
  std::vector<T> values;
  for (T value{}; line >> value;) values.push_back(value);
  if (!line.eof()) throw std::runtime_error("golden file: not a number");
  return values;
}

Golden read_golden(const std::string& name) {
  std::ifstream file(std::string(DEW_GOLDEN_DIR) + "/" + name + ".txt");
  if (!file) throw std::runtime_error("cannot read the golden file of " + name);
  Golden golden;
  Golden::Gradient* gradient = nullptr;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string tag;
    line >> tag;
    if (tag == "model") std::getline(line >> std::ws, golden.keys);
    if (tag == "rows") line >> golden.rows;
    if (tag == "length") line >> golden.length;
    if (tag == "vocab") line >> golden.vocab;
    if (tag == "loss") line >> golden.loss;
    if (tag == "log_probabilities") {
      for (std::int64_t t = 0; t < golden.length && std::getline(file, text); ++t) {
        std::istringstream row(text);
        golden.log_probabilities.push_back(all_of<double>(row));
      }
    }
    if (tag == "parameter") {
      std::string parameter;
      line >> parameter;
      gradient = &golden.gradients[parameter];
      gradient->shape = Shape(std::span<const std::int64_t>(all_of<std::int64_t>(line)));
    }
    if (tag == "norm") line >> gradient->norm;
    if (tag == "elements") gradient->first = all_of<double>(line);
  }
  return golden;
}

std::int32_t token_at(const char* stream, std::int64_t i, std::int64_t vocab) {
  return static_cast<std::int32_t>(philox(stream_key(kSeed, stream), static_cast<std::uint64_t>(i), 0)[0] %
                                   static_cast<std::uint32_t>(vocab));
}

Microbatch golden_microbatch(Workbench& bench, const Golden& golden) {
  std::vector<std::int32_t> tokens, targets;
  Microbatch microbatch;
  for (std::int64_t i = 0; i < golden.rows * golden.length; ++i) {
    const bool masked = philox(stream_key(kSeed, "targets"), static_cast<std::uint64_t>(i), 0)[1] % 4 == 0;
    tokens.push_back(token_at("tokens", i, golden.vocab));
    targets.push_back(masked ? -1 : token_at("targets", i, golden.vocab));
    if (!masked) ++microbatch.batch.valid;
  }
  microbatch.batch.tokens = bench.ints({golden.rows, golden.length}, tokens);
  microbatch.batch.positions = positions_of(bench, golden.rows, golden.length);
  microbatch.batch.targets = bench.ints({golden.rows, golden.length}, targets);
  microbatch.loss_scale = 1.0 / static_cast<double>(microbatch.batch.valid);
  return microbatch;
}

/// Matrices are within 0.4 of 0, weights of norms within 0.5 of 1, biases within 0.5 of 0.
Numbers golden_weight(const std::string& name, const Shape& shape) {
  const bool norm = name.size() >= 4 && name.compare(name.size() - 4, 4, "norm") == 0;
  Numbers x;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const double u =
        std::ldexp(philox(stream_key(kSeed, name), static_cast<std::uint64_t>(i), 0)[0], -32) - 0.5;
    x.push_back(shape.dims() == 2 ? u * 0.8 : norm ? 1 + u : u);
  }
  return x;
}

double norm_of(const Numbers& x) {
  double squares = 0;
  for (double value : x) squares += value * value;
  return std::sqrt(squares);
}

class GoldenDecoder : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = read_golden(GetParam());
    model_ = decoder_of(golden_.keys);
    ASSERT_EQ(static_cast<std::int64_t>(golden_.log_probabilities.size()), golden_.length);
    std::map<std::string, Shape> shapes, expected;
    for (const ParamSpec& spec : model_.params()) shapes.emplace(spec.name, spec.shape);
    for (const auto& [name, gradient] : golden_.gradients) expected.emplace(name, gradient.shape);
    ASSERT_EQ(shapes, expected);
    run_.emplace(bench_, model_);
    for (auto& [name, weight] : run_->weights)
      weight =
          bench_.tensor(weight.shape(), golden_weight(name, weight.shape()), DType::kF64, Owner::kWeights);
  }

  Workbench bench_;
  Golden golden_;
  Model model_;
  std::optional<ChainRun> run_;
};

INSTANTIATE_TEST_SUITE_P(Cases, GoldenDecoder,
                         testing::Values("gpt2", "gpt2_exact_gelu", "llama", "llama3_rope_scaling",
                                         "llama_biases", "qwen3"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(GoldenDecoder, HasTheLoss) {
  const Microbatch microbatch = golden_microbatch(bench_, golden_);

  EXPECT_NEAR(run_->evaluate(microbatch), golden_.loss, kRelative * golden_.loss);
}

TEST_P(GoldenDecoder, HasTheProbabilities) {
  Microbatch microbatch = golden_microbatch(bench_, golden_);
  microbatch.loss_scale = 1;
  std::vector<std::int32_t> targets(static_cast<std::size_t>(golden_.rows * golden_.length), -1);
  for (std::size_t t = 0; t < golden_.log_probabilities.size(); ++t) {
    Numbers actual;
    for (std::int64_t v = 0; v < golden_.vocab; ++v) {
      targets[t] = static_cast<std::int32_t>(v);
      microbatch.batch.targets = bench_.ints({golden_.rows, golden_.length}, targets);
      actual.push_back(-run_->evaluate(microbatch));
    }
    targets[t] = -1;
    SCOPED_TRACE("position " + std::to_string(t));
    expect_near(actual, golden_.log_probabilities[t], kRelative);
  }
}

TEST_P(GoldenDecoder, HasTheGradients) {
  run_->differentiate(golden_microbatch(bench_, golden_));

  ASSERT_EQ(run_->gradients.size(), golden_.gradients.size());
  for (const auto& [name, expected] : golden_.gradients) {
    const Numbers actual = numbers(run_->gradients.at(name));
    EXPECT_NEAR(norm_of(actual), expected.norm, kRelative * std::max(expected.norm, kZeroGradient)) << name;
    // An element is a sum of terms as large as the others' are, however small it is itself.
    const double typical =
        std::max(expected.norm / std::sqrt(static_cast<double>(actual.size())), kZeroGradient);
    ASSERT_LE(expected.first.size(), actual.size()) << name;
    for (std::size_t i = 0; i < expected.first.size(); ++i)
      EXPECT_NEAR(actual[i], expected.first[i], kRelative * std::max(typical, std::abs(expected.first[i])))
          << name << " element " << i;
  }
}

}  // namespace
}  // namespace dew::test
