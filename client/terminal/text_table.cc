#include "client/terminal/text_table.h"

#include <algorithm>
#include <utility>

namespace cipherd::client {
namespace {

// Characters that a UTF-8 string takes on a terminal, wide ones aside.
size_t DisplayWidth(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

void AppendCell(const std::string& cell, size_t width, Align align, std::string* line) {
  const std::string padding(width - DisplayWidth(cell), ' ');
  *line += align == Align::kLeft ? cell + padding : padding + cell;
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) {
    for (char& c : cell) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
  }
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> head;
  bool has_head = false;
  for (const Column& column : columns_) {
    head.push_back(column.title);
    has_head = has_head || !column.title.empty();
  }
  if (has_head) lines.push_back(head);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(line[i]));
  }
  if (has_head) {
    std::vector<std::string> rule;
    for (size_t width : widths) rule.emplace_back(width, '-');
    lines.insert(lines.begin() + 1, rule);
  }

  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      if (i > 0) row += "  ";
      AppendCell(line[i], widths[i], columns_[i].align, &row);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace cipherd::client
