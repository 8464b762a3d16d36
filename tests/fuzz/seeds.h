// Lawful inputs of every target, made from values as the library writes them.
#pragma once

#include <functional>
#include <string_view>

namespace cipherd::fuzz {

using SeedSink =
    std::function<void(std::string_view target, std::string_view name, std::string_view bytes)>;

void AddMessageSeeds(const SeedSink& add);
void AddTextSeeds(const SeedSink& add);
void AddFileSeeds(const SeedSink& add);
void AddServiceSeeds(const SeedSink& add);

}  // namespace cipherd::fuzz
