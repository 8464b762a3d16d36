"""Rules, runbook and board of deploy/ as files: that they are valid, tested, and belong together."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import grafana_foundation_sdk.cog.plugins
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

import board
from processes import DEPLOY, SOURCE

RULE_FILES = ("recording.rules.yml", "alerts.rules.yml")
RUNBOOK = os.path.join(DEPLOY, "RUNBOOK.md")
UNIT_TESTS = sorted(glob.glob(os.path.join(SOURCE, "tests", "observability", "rules", "*.test.yml")))


def promtool(*arguments):
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)


def read_yaml(*path):
    with open(os.path.join(*path)) as file:
        return yaml.safe_load(file)


def alerts():
    return [rule for group in read_yaml(DEPLOY, "prometheus", "alerts.rules.yml")["groups"] for rule in group["rules"]]


def anchor(heading):
    """What Markdown makes of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


class RulesTest(unittest.TestCase):
    def test_files_are_valid(self):
        for arguments in (["check", "config", "prometheus.yml"], ["check", "rules", *RULE_FILES]):
            paths = [os.path.join(DEPLOY, "prometheus", a) if a.endswith("yml") else a for a in arguments]
            run = promtool(*paths)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_unit_tests_pass(self):
        self.assertTrue(UNIT_TESTS)
        run = promtool("test", "rules", *UNIT_TESTS)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def cases(self):
        """The checks of each alert: whether they expect it to fire, and the file."""
        cases = {rule["alert"]: [] for rule in alerts()}
        for path in UNIT_TESTS:
            for test in read_yaml(path)["tests"]:
                for check in test.get("alert_rule_test", []):
                    cases[check["alertname"]].append((bool(check.get("exp_alerts")), path))
        return cases

    def test_every_alert_is_seen_firing_and_not_firing(self):
        for alert, cases in self.cases().items():
            with self.subTest(alert):
                self.assertEqual({fires for fires, _ in cases}, {True, False})

    def test_unit_tests_notice_an_alert_that_never_fires_and_one_that_always_does(self):
        rules = read_yaml(DEPLOY, "prometheus", "alerts.rules.yml")
        for alert, cases in self.cases().items():
            for expression in ("vector(0) > 0", "vector(1)"):
                with self.subTest(alert, expression=expression), tempfile.TemporaryDirectory() as directory:
                    changed = json.loads(json.dumps(rules))
                    for group in changed["groups"]:
                        # Only the one in question: the other alerts' checks fail, too, and are taken out below.
                        group["rules"] = [rule for rule in group["rules"] if rule["alert"] == alert]
                        for rule in group["rules"]:
                            rule["expr"] = expression
                    with open(os.path.join(directory, "alerts.rules.yml"), "w") as file:
                        yaml.safe_dump(changed, file)
                    shutil.copy(os.path.join(DEPLOY, "prometheus", "recording.rules.yml"), directory)
                    paths = []
                    for path in {path for _, path in cases}:
                        test_file = read_yaml(path)
                        test_file["rule_files"] = list(RULE_FILES)
                        for test in test_file["tests"]:
                            test.pop("promql_expr_test", None)
                            test["alert_rule_test"] = [
                                check for check in test.get("alert_rule_test", []) if check["alertname"] == alert]
                        paths.append(os.path.join(directory, os.path.basename(path)))
                        with open(paths[-1], "w") as file:
                            yaml.safe_dump(test_file, file)
                    run = promtool("test", "rules", *paths)
                    self.assertNotEqual(run.returncode, 0)
                    self.assertIn("alertname: " + alert, run.stdout + run.stderr)

    def test_alerts_say_who_is_called(self):
        for rule in alerts():
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
                self.assertTrue(rule["annotations"]["summary"])


class RunbookTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(RUNBOOK) as file:
            parts = re.split(r"^### (.+)$", file.read(), flags=re.MULTILINE)
        cls.sections = dict(zip(parts[1::2], parts[2::2]))

    def test_every_alert_links_to_its_heading(self):
        anchors = {anchor(heading) for heading in self.sections}
        for rule in alerts():
            path, _, fragment = rule["annotations"]["runbook_url"].partition("#")
            with self.subTest(rule["alert"]):
                self.assertTrue(os.path.samefile(os.path.join(SOURCE, path), RUNBOOK))
                self.assertIn(fragment, anchors)
                self.assertEqual(fragment, anchor(rule["alert"]))

    def test_every_heading_of_an_alert_is_one(self):
        named = {heading for heading in self.sections if heading.startswith("Cipherd")}
        self.assertEqual(named, {rule["alert"] for rule in alerts()})

    def test_every_section_says_what_it_means_where_to_look_and_what_to_do(self):
        for rule in alerts():
            with self.subTest(rule["alert"]):
                for word in ("Means", "Look", "Do"):
                    self.assertRegex(self.sections[rule["alert"]], rf"(?m)^\*\*{word}\.\*\* \S")

    def test_flags_that_it_names_are_those_of_the_daemon(self):
        with open(RUNBOOK) as file:
            named = set(re.findall(r"`(--[a-z-]+)", file.read()))
        run = subprocess.run([os.environ["CIPHERD_BINARY"], "--help"], capture_output=True, text=True, check=True)
        self.assertTrue(named)
        self.assertEqual(named - set(re.findall(r"--[a-z-]+", run.stdout)), set())


class BoardTest(unittest.TestCase):
    def lost(self, before, after, path=""):
        """What the schema's types did not take over as it was. They may add their defaults."""
        if isinstance(before, dict) and isinstance(after, dict):
            return [where for key in before for where in self.lost(before[key], after.get(key), f"{path}.{key}")]
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            return [where for i, pair in enumerate(zip(before, after)) for where in self.lost(*pair, f"{path}[{i}]")]
        return [] if before == after else [path]

    def through_schema(self, dashboard):
        grafana_foundation_sdk.cog.plugins.register_default_plugins()
        return json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))

    def test_is_what_grafanas_schema_knows(self):
        dashboard = board.load()
        self.assertEqual(self.lost(dashboard, self.through_schema(dashboard)), [])

    def test_the_schema_does_not_know_everything(self):
        dashboard = board.load()
        panel = next(panel for panel in dashboard["panels"] if panel["type"] == "timeseries")
        panel["fieldConfig"]["defaults"]["custom"]["no_such_option"] = 1
        panel["no_such_field"] = 1
        self.assertEqual(len(self.lost(dashboard, self.through_schema(dashboard))), 2)

    def test_panels_have_names_places_and_queries_of_their_own(self):
        panels = board.load()["panels"]
        cells = set()
        for panel in panels:
            place = panel["gridPos"]
            own = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                   for y in range(place["y"], place["y"] + place["h"])}
            with self.subTest(panel["title"]):
                self.assertLessEqual(place["x"] + place["w"], 24)
                self.assertFalse(cells & own)
                self.assertEqual(bool(panel.get("targets")), panel["type"] != "row")
            cells |= own
        for key in ("id", "title"):
            values = [panel[key] for panel in panels]
            self.assertEqual(len(values), len(set(values)))

    def test_provisioning_finds_it(self):
        provisioning = os.path.join(DEPLOY, "grafana", "provisioning")
        provider, = read_yaml(provisioning, "dashboards", "cipherd.yml")["providers"]
        self.assertEqual(provider["type"], "file")
        self.assertEqual(os.path.basename(provider["options"]["path"]), os.path.basename(board.PATH))
        source, = read_yaml(provisioning, "datasources", "prometheus.yml")["datasources"]
        self.assertEqual(source["type"], "prometheus")
        variables = {variable["name"]: variable for variable in board.load()["templating"]["list"]}
        self.assertEqual(variables["datasource"]["query"], source["type"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
