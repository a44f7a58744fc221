#include "io/sentences.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "base/text.h"
#include "io/byte_line.h"
#include "io/token_source.h"

namespace dew {
namespace {

struct Noun {
  std::string_view one, many;
};
enum class Object : std::uint8_t { kLiving, kFood, kThing };
struct Verb {
  std::string_view one, many;  ///< "the dog sees", "the dogs see"
  Object object = Object::kLiving;
};

constexpr std::array<Noun, 12> kLiving{{{"dog", "dogs"},
                                        {"cat", "cats"},
                                        {"bird", "birds"},
                                        {"horse", "horses"},
                                        {"owl", "owls"},
                                        {"child", "children"},
                                        {"farmer", "farmers"},
                                        {"teacher", "teachers"},
                                        {"sailor", "sailors"},
                                        {"fox", "foxes"},
                                        {"girl", "girls"},
                                        {"uncle", "uncles"}}};
constexpr std::array<Noun, 6> kFood{{{"apple", "apples"},
                                     {"cake", "cakes"},
                                     {"egg", "eggs"},
                                     {"pear", "pears"},
                                     {"fish", "fish"},
                                     {"nut", "nuts"}}};
constexpr std::array<Noun, 8> kThing{{{"basket", "baskets"},
                                      {"book", "books"},
                                      {"lamp", "lamps"},
                                      {"letter", "letters"},
                                      {"umbrella", "umbrellas"},
                                      {"hat", "hats"},
                                      {"stone", "stones"},
                                      {"rope", "ropes"}}};
constexpr std::array<Verb, 10> kTransitive{{{"sees", "see", Object::kLiving},
                                            {"follows", "follow", Object::kLiving},
                                            {"watches", "watch", Object::kLiving},
                                            {"calls", "call", Object::kLiving},
                                            {"eats", "eat", Object::kFood},
                                            {"finds", "find", Object::kFood},
                                            {"brings", "bring", Object::kFood},
                                            {"carries", "carry", Object::kThing},
                                            {"hides", "hide", Object::kThing},
                                            {"loses", "lose", Object::kThing}}};
constexpr std::array<Verb, 5> kIntransitive{
    {{"sleeps", "sleep"}, {"waits", "wait"}, {"sings", "sing"}, {"runs", "run"}, {"rests", "rest"}}};
constexpr std::array<std::string_view, 8> kMood{"small", "young", "quiet",  "old",
                                                "happy", "tired", "clever", "angry"};
constexpr std::array<std::string_view, 6> kLook{"small", "red", "old", "white", "round", "heavy"};
constexpr std::array<std::string_view, 8> kPlace{"in the garden",    "near the river", "under the old tree",
                                                 "behind the house", "by the sea",     "on the hill",
                                                 "at the market",    "in the rain"};
constexpr std::array<std::string_view, 4> kWhen{"in the morning", "every day", "at night", "after the storm"};

/// The draws of one sentence: philox blocks under the corpus's key, one 32-bit word a draw.
class Draws {
 public:
  Draws(std::uint64_t key, std::uint64_t sentence) : key_(key), sentence_(sentence) {}

  std::size_t below(std::size_t count) {
    if (next_ % 4 == 0) block_ = philox(key_, sentence_, next_ / 4);
    const std::uint64_t word = block_[next_++ % 4];
    return static_cast<std::size_t>((word * count) >> 32);
  }
  bool once_in(std::size_t count) { return below(count) == 0; }
  template <class List>
  const typename List::value_type& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t key_, sentence_, next_ = 0;
  PhiloxBlock block_{};
};

void append(std::string& text, std::string_view word) {
  text += word;
  text += ' ';
}

/// "the small dogs " or "an owl ".
void append_noun_phrase(std::string& text, Draws& draws, const Noun& noun, bool living, bool plural) {
  std::string_view look;
  if (draws.once_in(3)) look = living ? draws.pick(kMood) : draws.pick(kLook);
  const std::string_view name = plural ? noun.many : noun.one;
  const std::string_view next = look.empty() ? name : look;
  const bool vowel = std::string_view("aeiou").find(next.front()) != std::string_view::npos;
  const bool definite = !draws.once_in(3);
  append(text, definite ? "the" : plural ? "some" : vowel ? "an" : "a");
  if (!look.empty()) append(text, look);
  append(text, name);
}

const Noun& pick_object(Draws& draws, Object object) {
  if (object == Object::kFood) return draws.pick(kFood);
  return object == Object::kThing ? draws.pick(kThing) : draws.pick(kLiving);
}

void append_sentence(std::string& text, Draws draws) {
  const bool plural = draws.once_in(3);
  append_noun_phrase(text, draws, draws.pick(kLiving), true, plural);
  const bool transitive = !draws.once_in(4);
  const Verb& verb = transitive ? draws.pick(kTransitive) : draws.pick(kIntransitive);
  append(text, plural ? verb.many : verb.one);
  if (transitive) {
    const Noun& object = pick_object(draws, verb.object);
    append_noun_phrase(text, draws, object, verb.object == Object::kLiving, draws.once_in(3));
  }
  if (!transitive || draws.once_in(3)) append(text, draws.pick(kPlace));
  if (draws.once_in(5)) append(text, draws.pick(kWhen));
  text.back() = '.';
  text += '\n';
}

class Sentences final : public TokenSource {
 public:
  Sentences(std::int64_t count, std::uint64_t seed, double validation)
      : count_(count),
        text_(write_sentences(count, seed)),
        line_({std::as_bytes(std::span<const char>(text_))}, validation) {}

  std::int64_t vocab_size() const override { return kByteVocabulary; }
  std::int64_t tokens(Split split) const override { return line_.tokens(split); }
  void read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const override {
    line_.read(split, begin, ids);
  }
  void will_need(Split, std::int64_t, std::int64_t) const override {}  // in memory already
  std::string describe() const override {
    return format("sentences (%lld generated, %s, bytes)", static_cast<long long>(count_),
                  format_bytes(static_cast<double>(line_.total())).c_str());
  }

 private:
  std::int64_t count_;
  std::string text_;
  ByteLine line_;
};

}  // namespace

std::string write_sentences(std::int64_t count, std::uint64_t seed) {
  const std::uint64_t key = stream_key(seed, "sentences");
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) append_sentence(text, Draws(key, static_cast<std::uint64_t>(i)));
  return text;
}

std::unique_ptr<TokenSource> generate_sentences(std::int64_t count, std::uint64_t seed, double validation) {
  if (count < 1) throw ConfigError("data.sentences: " + std::to_string(count) + ": accepted: 1 or more");
  return std::make_unique<Sentences>(count, seed, validation);
}

}  // namespace dew
