// A table for the terminal: columns as wide as their longest cell.
//
//   TextTable table({{"program"}, {"version", Align::kRight}});
//   table.AddRow({"fashion_mlp", "1"});
//   std::cout << table.ToString();
//
//   program      version
//   -----------  -------
//   fashion_mlp        1
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cipherd::client {

enum class Align : uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class TextTable {
 public:
  // Without any title there is no head.
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty, cells past the columns are dropped. Control characters, which could
  // steer the terminal, become '?': cells may come from a server.
  void AddRow(std::vector<std::string> cells);
  std::string ToString() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cipherd::client
