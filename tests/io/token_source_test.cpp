#include "io/token_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <sstream>

#include "base/check.h"
#include "io/sentences.h"
#include "io/temp_folder.h"

namespace dew {
namespace {

std::vector<std::int32_t> read(const TokenSource& source, Split split, std::int64_t begin,
                               std::size_t count) {
  std::vector<std::int32_t> ids(count, -7);
  source.read(split, begin, ids);
  return ids;
}

std::string read_text(const TokenSource& source, Split split) {
  std::string text;
  for (const std::int32_t id : read(source, split, 0, static_cast<std::size_t>(source.tokens(split)))) {
    text += static_cast<char>(id);
  }
  return text;
}

template <class T>
std::string stored(const std::vector<std::uint32_t>& ids) {
  std::string bytes;
  for (const std::uint32_t id : ids) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(id >> (8 * i) & 0xFF);
  }
  return bytes;
}

std::string meta(const std::string& dtype, std::int64_t vocabulary, std::int64_t train,
                 std::int64_t validation) {
  return "{\"tokenizer\": \"test\", \"vocab_size\": " + std::to_string(vocabulary) + ", \"dtype\": \"" +
         dtype + "\", \"train_tokens\": " + std::to_string(train) +
         ", \"val_tokens\": " + std::to_string(validation) + ", \"eos_id\": null}";
}

/// A directory of 300 training and 5 validation ids of type T.
template <class T>
void write_directory(const TempFolder& folder, const std::string& dtype, std::uint32_t vocabulary) {
  std::vector<std::uint32_t> train(300), validation(5);
  for (std::size_t i = 0; i < train.size(); ++i)
    train[i] = static_cast<std::uint32_t>(i * 97531) % vocabulary;
  for (std::size_t i = 0; i < validation.size(); ++i)
    validation[i] = vocabulary - 1 - static_cast<std::uint32_t>(i);
  folder.write("train.bin", stored<T>(train));
  folder.write("val.bin", stored<T>(validation));
  folder.write("meta.json", meta(dtype, vocabulary, 300, 5));
}

std::string open_error(const TempFolder& folder) {
  return message_of<ConfigError>([&] { open_token_directory(folder.path()); });
}

/// Every message names the YAML path and the file.
void expect_error(const TempFolder& folder, const std::string& file, const std::string& part) {
  const std::string message = open_error(folder);
  EXPECT_NE(message.find("data.tokens: " + folder.file(file) + ": "), std::string::npos) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

template <class T>
void expect_ids_of(const std::string& dtype, std::uint32_t vocabulary) {
  const TempFolder folder;
  write_directory<T>(folder, dtype, vocabulary);
  const auto source = open_token_directory(folder.path());

  ASSERT_EQ(source->vocab_size(), vocabulary);
  ASSERT_EQ(source->tokens(Split::kTrain), 300);
  ASSERT_EQ(source->tokens(Split::kValidation), 5);
  const std::vector<std::int32_t> ids = read(*source, Split::kTrain, 3, 257);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(static_cast<std::uint32_t>(ids[i]), static_cast<std::uint32_t>((i + 3) * 97531) % vocabulary)
        << i;
  }
  EXPECT_EQ(read(*source, Split::kValidation, 4, 1).front(), static_cast<std::int32_t>(vocabulary - 5));
  source->will_need(Split::kTrain, 290, 1000);  // past the end: only a hint
}

TEST(TokenDirectory, ReadsLittleEndianIdsOfEveryType) {
  expect_ids_of<std::uint8_t>("uint8", 256);
  expect_ids_of<std::uint8_t>("uint8", 200);
  expect_ids_of<std::uint16_t>("uint16", 50257);
  expect_ids_of<std::uint32_t>("uint32", 2147483647);
}

TEST(TokenDirectory, AllowsNoValidationTokensAndNoTokensRead) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  folder.write("val.bin", "");
  folder.write("meta.json", meta("uint8", 256, 300, 0));
  const auto source = open_token_directory(folder.path());

  EXPECT_EQ(source->tokens(Split::kValidation), 0);
  EXPECT_TRUE(read(*source, Split::kValidation, 0, 0).empty());
  EXPECT_TRUE(read(*source, Split::kTrain, 300, 0).empty());
}

TEST(TokenDirectory, RefusesMissingFiles) {
  for (const char* name : {"train.bin", "val.bin", "meta.json"}) {
    const TempFolder folder;
    write_directory<std::uint8_t>(folder, "uint8", 256);
    std::filesystem::remove(folder.file(name));
    expect_error(folder, name, "No such file");
  }
}

TEST(TokenDirectory, RefusesAFolderInPlaceOfAFile) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  std::filesystem::remove(folder.file("val.bin"));
  std::filesystem::create_directory(folder.file("val.bin"));

  expect_error(folder, "val.bin", "not a regular file");
}

TEST(TokenDirectory, RefusesSizesThatDoNotDivideOrDisagree) {
  const TempFolder folder;
  write_directory<std::uint16_t>(folder, "uint16", 1000);
  folder.write("train.bin", std::string(601, 'a'));
  expect_error(folder, "train.bin", "601 bytes do not divide by the 2 bytes of a uint16");

  folder.write("train.bin", std::string(598, '\0'));
  expect_error(folder, "train.bin", "holds 299 tokens of uint16, but meta.json says train_tokens 300");

  write_directory<std::uint16_t>(folder, "uint16", 1000);
  folder.write("val.bin", std::string(12, '\0'));
  expect_error(folder, "val.bin", "holds 6 tokens of uint16, but meta.json says val_tokens 5");
}

TEST(TokenDirectory, RefusesAMetaFileThatIsNoObject) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  for (const char* text : {"", "{", "[1, 2]", "null", "{\"vocab_size\": 256,}", "\x80"}) {
    folder.write("meta.json", text);
    expect_error(folder, "meta.json", "is no JSON object");
  }
}

TEST(TokenDirectory, NamesEverythingThatIsWrongInTheMetaFileAtOnce) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  folder.write("meta.json", R"({"tokenizer": 3, "vocab_size": 0, "dtype": "int16", "train_tokens": "many",
                                "val_tokens": -1})");

  expect_error(folder, "meta.json", "tokenizer: 3: accepted: a text");
  expect_error(folder, "meta.json", "vocab_size: 0: accepted: an integer from 1 to 2147483647");
  expect_error(folder, "meta.json", "dtype: \"int16\": accepted: uint8, uint16 or uint32");
  expect_error(folder, "meta.json", "train_tokens: \"many\": accepted: an integer from 0");
  expect_error(folder, "meta.json", "val_tokens: -1: accepted: an integer from 0");
  expect_error(folder, "meta.json", "lacks the key eos_id");
}

TEST(TokenDirectory, RefusesNumbersThatAreNotIntegersInRange) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  for (const char* number : {"256.0", "2147483648", "18446744073709551615", "1e3", "true", "null"}) {
    folder.write("meta.json",
                 std::string("{\"tokenizer\": \"t\", \"dtype\": \"uint8\", \"train_tokens\": 300, ") +
                     "\"val_tokens\": 5, \"eos_id\": null, \"vocab_size\": " + number + "}");
    expect_error(folder, "meta.json", "vocab_size: ");
  }
  folder.write("meta.json", R"({"tokenizer": "t", "dtype": "uint8", "train_tokens": 300, "val_tokens": 5,
                                "eos_id": 256, "vocab_size": 256})");
  expect_error(folder, "meta.json", "eos_id: 256: accepted: an integer from 0 to 255");
}

TEST(TokenDirectory, RefusesAMetaFileThatSaysAKeyTwiceOrIsDeepOrHuge) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  std::string twice = meta("uint8", 256, 300, 5);
  twice.insert(1, "\"vocab_size\": 200, ");
  folder.write("meta.json", twice);
  expect_error(folder, "meta.json", "the key vocab_size comes twice");

  // Printed level by level, such a value would overrun the stack.
  std::string deep = meta("uint8", 256, 300, 5);
  const std::string brackets = std::string(200'000, '[') + std::string(200'000, ']');
  folder.write("meta.json", deep.replace(deep.find("256"), 3, brackets));
  expect_error(folder, "meta.json", "is nested deeper than 16 levels");

  folder.write("meta.json", std::string(2 << 20, ' '));
  expect_error(folder, "meta.json", "holds more than 1 MiB");

  folder.write("meta.json", meta(std::string(5000, 'x'), 256, 300, 5));
  EXPECT_LT(open_error(folder).size(), 400u);
}

// Without its mask the run would train on what was masked out.
TEST(TokenDirectory, RefusesAMaskThatIsALinkToNothing) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  std::filesystem::create_symlink(folder.file("nowhere"), folder.file("train.mask"));
  expect_error(folder, "train.mask", "No such file");
}

TEST(TokenDirectory, NamesThePlaceOfAnIdBeyondTheVocabulary) {
  const TempFolder folder;
  write_directory<std::uint32_t>(folder, "uint32", 1000);
  std::vector<std::uint32_t> ids(300, 999);
  ids[77] = 1000;
  ids[200] = 0xFFFFFFFF;
  folder.write("train.bin", stored<std::uint32_t>(ids));
  const auto source = open_token_directory(folder.path());

  EXPECT_EQ(read(*source, Split::kTrain, 0, 77).back(), 999);
  EXPECT_EQ(message_of<Error>([&] { read(*source, Split::kTrain, 60, 33); }),
            folder.file("train.bin") + ": token 77 is 1000, but the vocabulary has 1000 ids");
  EXPECT_EQ(message_of<Error>([&] { read(*source, Split::kTrain, 200, 1); }),
            folder.file("train.bin") + ": token 200 is 4294967295, but the vocabulary has 1000 ids");
}

TEST(TokenDirectory, RefusesReadsBeyondASplit) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  const auto source = open_token_directory(folder.path());

  EXPECT_THROW(read(*source, Split::kTrain, 300, 1), Error);
  EXPECT_THROW(read(*source, Split::kTrain, -1, 1), Error);
  EXPECT_THROW(read(*source, Split::kValidation, 0, 6), Error);
}

TEST(TextFiles, ReadAcrossTheEndsOfFilesAndOfTheTrainingSplit) {
  const TempFolder folder;
  const std::string text = "one, two\xFF\x80 and\nthree: the whole line";
  const auto source =
      open_text_files({folder.write("a", text.substr(0, 3)), folder.write("b", text.substr(3, 1)),
                       folder.write("c", text.substr(4))},
                      0.25);

  EXPECT_EQ(source->vocab_size(), 256);
  const auto validation = static_cast<std::int64_t>(text.size() / 4);
  ASSERT_EQ(source->tokens(Split::kValidation), validation);
  ASSERT_EQ(source->tokens(Split::kTrain), static_cast<std::int64_t>(text.size()) - validation);
  EXPECT_EQ(read_text(*source, Split::kTrain) + read_text(*source, Split::kValidation), text);
  for (std::size_t begin = 0; begin < 6; ++begin) {
    for (std::size_t count = 0; count < 6; ++count) {
      const std::vector<std::int32_t> ids =
          read(*source, Split::kTrain, static_cast<std::int64_t>(begin), count);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(ids[i], static_cast<unsigned char>(text[begin + i])) << begin << ' ' << count;
      }
    }
  }
  source->will_need(Split::kTrain, 0, 6);
  EXPECT_THROW(read(*source, Split::kTrain, source->tokens(Split::kTrain), 1), Error);
}

TEST(TextFiles, MayKeepNothingForValidation) {
  const TempFolder folder;
  const auto source = open_text_files({folder.write("a", "abc")}, 0);

  EXPECT_EQ(source->tokens(Split::kTrain), 3);
  EXPECT_EQ(source->tokens(Split::kValidation), 0);
  EXPECT_EQ(source->describe(), "text (1 file, 3 B, bytes)");
}

TEST(TextFiles, RefuseMissingEmptyAndNoFilesAndWrongShares) {
  const TempFolder folder;
  const std::string good = folder.write("a", "abc"), empty = folder.write("b", "");
  const auto error = [](const std::vector<std::string>& files, double share) {
    return message_of<ConfigError>([&] { open_text_files(files, share); });
  };

  EXPECT_EQ(error({good, folder.file("none")}, 0.1),
            "data.text: " + folder.file("none") + ": No such file or directory");
  EXPECT_EQ(error({good, empty}, 0.1), "data.text: " + empty + ": the file is empty");
  EXPECT_EQ(error({folder.path()}, 0.1), "data.text: " + folder.path() + ": not a regular file");
  EXPECT_EQ(error({}, 0.1), "data.text: names no file; at least one is needed");
  EXPECT_EQ(error({good}, 1), "data.validation: 1: accepted: 0 or more, below 1");
  EXPECT_EQ(error({good}, -0.5), "data.validation: -0.5: accepted: 0 or more, below 1");
}

TEST(Sentences, ArePureFunctionsOfCountAndSeed) {
  const std::string text = write_sentences(200, 3);

  EXPECT_EQ(text, write_sentences(200, 3));
  EXPECT_NE(text, write_sentences(200, 4));
  EXPECT_TRUE(write_sentences(300, 3).starts_with(text));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 200);
}

TEST(Sentences, AreShortEnglishOfSomeDozensOfWords) {
  std::istringstream lines(write_sentences(4000, 0));
  std::set<std::string> words, sentences;
  std::size_t bytes = 0;

  for (std::string line; std::getline(lines, line);) {
    bytes += line.size() + 1;
    sentences.insert(line);
    ASSERT_TRUE(line.ends_with('.') && line.size() >= 10 && line.size() <= 110) << line;
    line.pop_back();
    std::istringstream in(line);
    std::string last;
    for (std::string word; in >> word; last = word) {
      words.insert(word);
      const bool vowel = std::strchr("aeiou", word.front()) != nullptr;
      ASSERT_FALSE(last == "a" && vowel) << line;
      ASSERT_FALSE(last == "an" && !vowel) << line;
    }
  }

  EXPECT_GT(bytes, 120'000u);
  EXPECT_LT(bytes, 180'000u);
  EXPECT_GT(words.size(), 80u);
  EXPECT_LT(words.size(), 150u);
  EXPECT_GT(sentences.size(), 3000u) << "few repeat, so that validation is not a copy of training";
}

TEST(Sentences, KeepTheirLastShareForValidation) {
  const auto source = generate_sentences(50, 8, 0.1);
  const std::string text = write_sentences(50, 8);

  EXPECT_EQ(source->tokens(Split::kValidation), static_cast<std::int64_t>(text.size() / 10));
  EXPECT_EQ(read_text(*source, Split::kTrain) + read_text(*source, Split::kValidation), text);
  EXPECT_EQ(source->vocab_size(), 256);
  EXPECT_EQ(message_of<ConfigError>([] { generate_sentences(0, 1, 0.1); }),
            "data.sentences: 0: accepted: 1 or more");
}

TEST(TokenDirectory, ReadsLossMasksBesideTheTokens) {
  const TempFolder folder;
  write_directory<std::uint8_t>(folder, "uint8", 256);
  std::vector<std::uint8_t> counts(3, 9);
  open_token_directory(folder.file("."))->read_mask(Split::kTrain, 10, counts);
  EXPECT_EQ(counts, (std::vector<std::uint8_t>{1, 1, 1}));

  std::string mask(300, '\1');
  mask[11] = '\0';
  mask[200] = '\2';
  folder.write("train.mask", mask);
  const auto source = open_token_directory(folder.file("."));
  source->read_mask(Split::kTrain, 10, counts);
  EXPECT_EQ(counts, (std::vector<std::uint8_t>{1, 0, 1}));
  source->read_mask(Split::kValidation, 0, counts);
  EXPECT_EQ(counts, (std::vector<std::uint8_t>{1, 1, 1}));
  EXPECT_THROW(source->read_mask(Split::kTrain, 199, counts), Error) << "a byte that is neither 0 nor 1";

  folder.write("train.mask", "short");
  expect_error(folder, "train.mask", "holds 5 bytes; accepted: one for each of the 300 tokens");
}

}  // namespace
}  // namespace dew
