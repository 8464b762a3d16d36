"""The board of deploy/grafana, as its tests read it."""

import json
import os

from processes import DEPLOY

PATH = os.path.join(DEPLOY, "grafana", "cipherd.json")


def load():
    with open(PATH) as file:
        return json.load(file)


def queries():
    """Title of the panel and expression, of every query."""
    return [
        (panel["title"], target["expr"])
        for panel in load()["panels"]
        for target in panel.get("targets", [])
    ]


def fill(expression, **variables):
    """What Grafana would ask for, with these values of the board's variables."""
    for name, value in variables.items():
        expression = expression.replace("$" + name, value)
    assert "$" not in expression, expression
    return expression
