#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "io/config_value.h"

namespace dew {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDepth = 16;  // the parser recurses once a level; a description needs four
constexpr std::size_t kMaxKeyBytes = 256;

std::string place(const ConfigOrigin& origin, int line) {
  return origin.from_override ? origin.name : origin.name + " (line " + std::to_string(line) + ")";
}

/// Bytes of the UTF-8 character at `at`, 0 when it is not one.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char next = byte(at + 1);
  const bool overlong = (lead == 0xE0 && next < 0xA0) || (lead == 0xF0 && next < 0x90);
  const bool outside = (lead == 0xED && next >= 0xA0) || (lead == 0xF4 && next >= 0x90);
  return overlong || outside ? 0 : length;
}

/// Text only: the parser takes other bytes for content, or for another encoding.
void check_text(std::string_view text, const ConfigOrigin& origin) {
  if (text.size() > kMaxBytes && !origin.by_program)
    throw ConfigError(origin.name + ": more than 1 MiB; that is no run description");
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '\n') ++line;
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F;
    const std::size_t length = utf8_length(text, at);
    if (control || length == 0) {
      throw ConfigError(place(origin, line) + ": byte " + std::to_string(byte) +
                        " is not text; accepted: UTF-8");
    }
    at += length;
  }
}

/// Builds the value from the parser's events. Faults that leave the structure sound are collected; others end
/// it.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const ConfigOrigin& origin) : origin_(origin), next_order_(origin.first_order) {}

  ConfigValue take() {
    if (!errors_.empty()) throw ConfigError(errors_);
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) stop(mark, "a second document begins; accepted: one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_anchor(mark, anchor);
    if (expects_key()) stop(mark, "a key is missing; accepted: a word before the colon");
    add(start(ConfigValue::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { check_anchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    if (expects_key()) return open_key(mark, text);
    ConfigValue value = start(ConfigValue::Kind::kScalar, mark);
    value.text = text;
    value.quoted = tag != "?";
    add(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    push(ConfigValue::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { pop(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    push(ConfigValue::Kind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { pop(); }

 private:
  struct Frame {
    ConfigValue value;
    std::map<std::string, int> seen;  ///< keys and their lines
    std::string key;
    int key_line = 0;
    bool has_key = false;
  };

  [[noreturn]] void stop(const YAML::Mark& mark, const std::string& message) const {
    throw ConfigError(place(origin_, mark.line + 1) + ": " + message);
  }
  void check_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) stop(mark, "anchors (&name) and aliases (*name) are not accepted; write the value out");
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") stop(mark, "the tag " + shown(tag) + " is not accepted");
  }
  bool expects_key() const {
    return !stack_.empty() && stack_.back().value.is_mapping() && !stack_.back().has_key;
  }

  ConfigValue start(ConfigValue::Kind kind, const YAML::Mark& mark) {
    ConfigValue value;
    value.kind = kind;
    const bool under_key = !stack_.empty() && stack_.back().value.is_mapping();
    value.line = origin_.from_override ? 0 : under_key ? stack_.back().key_line : mark.line + 1;
    value.order = next_order_++;
    return value;
  }

  void open_key(const YAML::Mark& mark, const std::string& key) {
    Frame& frame = stack_.back();
    if (key.empty() || key.size() > kMaxKeyBytes)
      stop(mark, "a key is empty or too long: \"" + shown(key) + "\"");
    frame.key = key;
    frame.key_line = mark.line + 1;
    frame.has_key = true;
    const auto [first, added] = frame.seen.emplace(key, frame.key_line);
    if (added) return;
    std::string path;
    for (const Frame& level : stack_) {
      if (!level.value.is_mapping()) continue;
      path += (path.empty() ? "" : ".") + shown(level.key);
    }
    errors_.push_back(origin_.from_override
                          ? origin_.name + ": duplicate key " + path
                          : path + " (line " + std::to_string(frame.key_line) +
                                "): duplicate key, first given on line " + std::to_string(first->second));
  }

  void push(ConfigValue::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    if (expects_key()) stop(mark, "a list or mapping stands where a key is expected; accepted: a word");
    if (stack_.size() >= kMaxDepth) stop(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    Frame frame;
    frame.value = start(kind, mark);
    stack_.push_back(std::move(frame));
  }
  void pop() {
    ConfigValue value = std::move(stack_.back().value);
    stack_.pop_back();
    add(std::move(value));
  }
  void add(ConfigValue value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.value.is_mapping()) {
      frame.value.entries.push_back({std::move(frame.key), std::move(value)});
      frame.key.clear();
      frame.has_key = false;
    } else {
      frame.value.items.push_back(std::move(value));
    }
  }

  const ConfigOrigin& origin_;
  std::int64_t next_order_;
  int documents_ = 0;
  std::vector<Frame> stack_;
  ConfigValue root_;
  std::vector<std::string> errors_;
};

}  // namespace

ConfigValue parse_config(const std::string& text, const ConfigOrigin& origin) {
  check_text(text, origin);
  std::istringstream stream(text);
  Builder builder(origin);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {  // boundary: yaml-cpp tells of a syntax error in no other way
    throw ConfigError(place(origin, error.mark.line + 1) + ": not YAML: " + error.msg);
  }
  return builder.take();
}

}  // namespace dew
