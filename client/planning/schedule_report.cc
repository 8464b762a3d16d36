#include "client/planning/schedule_report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/terminal/progress_bar.h"
#include "client/terminal/text_table.h"

namespace cipherd::client {
namespace {

using programs::CheckedProgram;
using programs::Operation;
using programs::OperationKind;

std::string FormatBytes(int64_t bytes) {
  return FormatAmount(static_cast<double>(bytes), ProgressUnit::kBytes);
}

std::string FormatSeconds(double seconds) {
  return seconds < 1e-3 ? absl::StrFormat("%.1f µs", seconds * 1e6)
                        : absl::StrFormat("%.2f ms", seconds * 1e3);
}

std::string ReadsOf(const Operation& operation) {
  std::vector<std::string> parts;
  for (const std::string_view operand : programs::OperandsOf(operation)) {
    parts.emplace_back(operand);
  }
  if (!operation.constant.empty()) parts.push_back(absl::StrCat("[", operation.constant, "]"));
  return absl::StrJoin(parts, ", ");
}

// "by 512", "8 + 7 rotations, 64 diagonals", or "".
std::string DetailOf(const CheckedProgram& program, const Operation& operation) {
  if (operation.kind == OperationKind::kRotate) return absl::StrCat("by ", operation.step);
  if (operation.kind != OperationKind::kLinearTransform) return "";
  const ckks::BsgsPlan& plan = program.plans.find(operation.name)->second;
  int64_t diagonal_count = 0;
  for (const auto& [giant, terms] : plan.giants()) diagonal_count += std::ssize(terms);
  return absl::StrFormat("%d diagonals, %d + %d rotations", diagonal_count, plan.BabySteps().size(),
                         plan.GiantSteps().size());
}

const programs::EdgeState& StateOf(const CheckedProgram& program, const std::string& edge) {
  return program.edges.find(edge)->second;
}

int64_t RotationKeyCount(const CheckedProgram& program) {
  return std::count_if(program.keys.ids().begin(), program.keys.ids().end(),
                       [](const ckks::KeyId& id) { return id.rotation_step != 0; });
}

// `text` as it stands between quotation marks.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string FormatErrors(const programs::MeasuredErrors& errors) {
  return absl::StrFormat("errors up to %.2g (root mean square %.2g) over %d measured numbers",
                         errors.largest, errors.root_mean_square, errors.element_count);
}

std::string FormatSummary(const CheckedProgram& program,
                          const std::optional<planning::OperationCosts>& costs) {
  const ckks::ContextParameters& context = program.spec.context;
  TextTable table({{""}, {""}});
  table.AddRow({"program", absl::StrCat(program.spec.name, " version ", program.spec.version)});
  if (!program.spec.description.empty()) table.AddRow({"", program.spec.description});
  table.AddRow(
      {"context",
       absl::StrFormat("N = 2^%d, %d + %d primes in %d digits, log2(QP) = %.1f of %d, "
                       "depth %d, scale 2^%.0f",
                       context.log_n, context.q_count(), context.p_count(), context.digits.size(),
                       context.log_qp(), ckks::MaxSecureLogQp(context.log_n), context.max_depth(),
                       std::log2(context.default_scale))});
  for (const programs::ProgramInput& input : program.spec.inputs) {
    table.AddRow({absl::StrCat("input '", input.name, "'"),
                  absl::StrCat(absl::StrFormat("up to %d vectors of %d", input.layout.item_count,
                                               input.layout.element_count),
                               input.states_range() ? absl::StrFormat(", numbers from %.6g to %.6g",
                                                                      input.lower, input.upper)
                                                    : "")});
  }
  for (const programs::ProgramOutput& output : program.spec.outputs) {
    table.AddRow(
        {absl::StrCat("output '", output.name, "'"),
         absl::StrCat(absl::StrFormat("up to %d vectors of %d", output.layout.item_count,
                                      output.layout.element_count),
                      output.magnitude_bound > 0
                          ? absl::StrFormat(", magnitudes up to %.6g", output.magnitude_bound)
                          : "")});
    if (output.errors.element_count > 0) {
      table.AddRow({"", FormatErrors(output.errors)});
    }
  }
  table.AddRow(
      {"keys", absl::StrFormat("%d (%d rotations), %s", program.keys.size(),
                               RotationKeyCount(program), FormatBytes(program.key_bytes()))});
  table.AddRow({"an evaluation", absl::StrCat(FormatBytes(program.input_bytes()), " up, ",
                                              FormatBytes(program.output_bytes()), " down")});
  if (const int64_t bytes = program.constant_bytes(); bytes > 0) {
    std::string text = FormatBytes(bytes) + " encoded";
    const int64_t tiles = 2 * program.largest_constant_bytes();
    if (tiles < bytes) absl::StrAppend(&text, ", or streamed through ", FormatBytes(tiles));
    table.AddRow({"constants", std::move(text)});
  }
  if (costs) table.AddRow({"", FormatSeconds(costs->total_seconds()) + " predicted"});
  return table.ToString();
}

std::string FormatSchedule(const CheckedProgram& program,
                           const std::optional<planning::OperationCosts>& costs) {
  std::vector<Column> columns = {{"operation"},
                                 {"kind"},
                                 {"reads"},
                                 {""},
                                 {"depth", Align::kRight},
                                 {"scale", Align::kRight},
                                 {"limbs", Align::kRight}};
  if (costs) {
    columns.push_back({"µs", Align::kRight});
    columns.push_back({"share", Align::kRight});
  }
  TextTable table(columns);
  for (size_t i = 0; i < program.spec.operations.size(); ++i) {
    const Operation& operation = program.spec.operations[i];
    const programs::EdgeState& state = StateOf(program, operation.name);
    std::vector<std::string> row = {
        operation.name,
        std::string(ToString(operation.kind)),
        ReadsOf(operation),
        DetailOf(program, operation),
        absl::StrCat(state.depth),
        absl::StrFormat("2^%.2f", std::log2(state.scale)),
        absl::StrFormat("%d x %d", state.component_count,
                        program.spec.context.active_q_count(state.depth))};
    if (costs) {
      row.push_back(absl::StrFormat("%.1f", costs->seconds[i] * 1e6));
      row.push_back(absl::StrFormat("%.1f %%", 100 * costs->seconds[i] / costs->total_seconds()));
    }
    table.AddRow(std::move(row));
  }
  return table.ToString();
}

std::string ScheduleGraph(const CheckedProgram& program,
                          const std::optional<planning::OperationCosts>& costs) {
  // Of the scheme's nine, by depth; the last one for all that is deeper.
  const auto color = [](int depth) { return std::min(depth, 8) + 1; };
  std::string graph = absl::StrCat(
      "digraph ", Quoted(program.spec.name),
      " {\n  node [shape=box, style=filled, colorscheme=blues9, fontname=Helvetica]\n");
  for (const programs::ProgramInput& input : program.spec.inputs) {
    const programs::EdgeState& state = StateOf(program, input.name);
    absl::StrAppend(
        &graph, "  ", Quoted(input.name), " [shape=ellipse, fillcolor=", color(state.depth),
        ", label=", Quoted(absl::StrFormat("%s\ndepth %d", input.name, state.depth)), "]\n");
  }
  for (size_t i = 0; i < program.spec.operations.size(); ++i) {
    const Operation& operation = program.spec.operations[i];
    const programs::EdgeState& state = StateOf(program, operation.name);
    std::string label =
        absl::StrFormat("%s\n%s\ndepth %d, scale 2^%.1f", operation.name,
                        std::string(ToString(operation.kind)), state.depth, std::log2(state.scale));
    const std::string detail = DetailOf(program, operation);
    if (!detail.empty()) absl::StrAppend(&label, "\n", detail);
    if (costs) absl::StrAppend(&label, "\n", FormatSeconds(costs->seconds[i]));
    absl::StrAppend(&graph, "  ", Quoted(operation.name), " [fillcolor=", color(state.depth),
                    state.depth >= 5 ? ", fontcolor=white" : "", ", label=", Quoted(label), "]\n");
    for (const std::string_view operand : programs::OperandsOf(operation)) {
      absl::StrAppend(&graph, "  ", Quoted(operand), " -> ", Quoted(operation.name), "\n");
    }
  }
  for (const programs::ProgramOutput& output : program.spec.outputs) {
    const std::string node = absl::StrCat("output ", output.name);
    absl::StrAppend(&graph, "  ", Quoted(node),
                    " [shape=ellipse, fillcolor=white, label=", Quoted(output.name), "]\n  ",
                    Quoted(output.edge), " -> ", Quoted(node), "\n");
  }
  return graph + "}\n";
}

}  // namespace cipherd::client
