// dew_tokenize: text files -> a token directory for data.tokens.

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/check.h"
#include "io/token_writer.h"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "Usage: dew_tokenize TEXT... --out DIR [--validation SHARE] [--force]\n\n"
    "Writes DIR/train.bin, DIR/val.bin and DIR/meta.json: each byte of the files is one id (0 to 255, dtype "
    "uint8).\n"
    "The files follow each other in the order named, with nothing between them: bytes have no id that ends a "
    "document,\n"
    "so a window may cross from one file into the next.\n\n"
    "Exit status: 0 done, 1 failed while reading or writing, 2 the command line is wrong and nothing was "
    "written.\n\n";

int run(int argc, char** argv) {
  po::options_description visible("Options");
  visible.add_options()("out", po::value<std::string>()->value_name("DIR"),
                        "directory to write, made when missing")(
      "validation", po::value<double>()->value_name("SHARE")->default_value(0.1, "0.1"),
      "share of all bytes, the last ones, that goes to val.bin: 0 or more, below 1")(
      "force", po::bool_switch(), "replace token files that DIR holds")("help", "print this text");
  po::options_description all;
  all.add(visible).add_options()("text", po::value<std::vector<std::string>>(), "files to read");
  po::positional_options_description positional;
  positional.add("text", -1);

  po::variables_map given;
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(style).run(),
            given);
  po::notify(given);
  if (given.count("help") != 0) {
    std::cout << kUsage << visible;
    return 0;
  }
  if (given.count("out") == 0) throw dew::ConfigError("--out: missing; accepted: the directory to write");
  dew::ByteCorpus corpus;
  if (given.count("text") != 0) corpus.files = given["text"].as<std::vector<std::string>>();
  corpus.validation = given["validation"].as<double>();
  const std::string out = given["out"].as<std::string>();
  const dew::TokenMeta meta = dew::write_byte_tokens(corpus, out, given["force"].as<bool>());
  std::printf("%s: %lld tokens to train, %lld to validate (bytes, vocabulary %lld)\n", out.c_str(),
              static_cast<long long>(meta.train_tokens), static_cast<long long>(meta.val_tokens),
              static_cast<long long>(meta.vocab_size));
  return 0;
}

int fail(const std::exception& error, int status) {
  std::fprintf(stderr, "dew_tokenize: %s\n", error.what());
  if (status == 2) std::fprintf(stderr, "Try 'dew_tokenize --help'.\n");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const dew::ConfigError& error) {
    return fail(error, 2);
  } catch (const po::error& error) {
    return fail(error, 2);
  } catch (const std::exception& error) {
    return fail(error, 1);
  }
}
