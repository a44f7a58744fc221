#include "train/action.h"

#include <array>
#include <string_view>

namespace dew {

std::string to_text(const Action& action) {
  constexpr std::array<std::string_view, kActCount> kLetters{"F", "B", "I", "W", "SF", "RF", "SB", "RB", "R"};
  std::string text = std::to_string(action.chunk);
  text += kLetters[static_cast<std::size_t>(action.act)];
  return text += std::to_string(action.microbatch);
}

std::string to_text(const Program& program) {
  std::string text;
  for (const Action& action : program) {
    if (!text.empty()) text += ' ';
    text += to_text(action);
  }
  return text;
}

bool computes(Act act) {
  return act == Act::kForward || act == Act::kBackward || act == Act::kBackwardInput ||
         act == Act::kBackwardWeight;
}

std::optional<FarEnd> far_end(const PipelineShape& shape, int stage, const Action& action) {
  if (shape.stages == 1) return std::nullopt;
  int step = 0;
  Act met = action.act;
  switch (action.act) {
    case Act::kSendForward:
      step = 1, met = Act::kRecvForward;
      break;
    case Act::kRecvForward:
      step = -1, met = Act::kSendForward;
      break;
    case Act::kSendBackward:
      step = -1, met = Act::kRecvBackward;
      break;
    case Act::kRecvBackward:
      step = 1, met = Act::kSendBackward;
      break;
    default:
      return std::nullopt;
  }
  const int there = shape.virtual_stage(stage, action.chunk) + step;
  if (there < 0 || there >= shape.virtual_stages()) return std::nullopt;
  return FarEnd{there % shape.stages, {met, there / shape.stages, action.microbatch}};
}

}  // namespace dew
