// make_seeds DIRECTORY: writes DIRECTORY/TARGET/NAME for every seed.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/seeds.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds DIRECTORY\n");
    return 2;
  }
  bool written = true;
  const auto add = [&](std::string_view target, std::string_view name, std::string_view bytes) {
    const fs::path directory = fs::path(argv[1]) / target;
    fs::create_directories(directory);
    std::ofstream file(directory / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    written = written && file.flush().good();
  };
  cipherd::fuzz::AddMessageSeeds(add);
  cipherd::fuzz::AddTextSeeds(add);
  cipherd::fuzz::AddFileSeeds(add);
  cipherd::fuzz::AddServiceSeeds(add);
  return written ? 0 : 1;
}
