"""Renders what our kustomizations use of Kustomize, and refuses the rest.

render("deploy/kubernetes/overlays/cpu") gives the objects that `kubectl kustomize` gives (kubernetes_test.py compares the
two where kubectl is installed): resources, components, image tags, and patches by JSON Patch.
"""

import os

import jsonpatch
import yaml

KINDS = {
    "Kustomization": "kustomize.config.k8s.io/v1beta1",
    "Component": "kustomize.config.k8s.io/v1alpha1",
}
FIELDS = {"apiVersion", "kind", "resources", "components", "images", "patches"}


class KustomizationError(Exception):
    pass


def read_objects(path):
    with open(path) as file:
        return [entry for entry in yaml.safe_load_all(file) if entry is not None]


def render(directory):
    """The objects of the kustomization in `directory`, in the order in which they are named."""
    kustomization = _read(directory, "Kustomization")
    return _apply(directory, kustomization, [])


def key_of(entry):
    return entry["kind"], entry["metadata"]["name"]


def _read(directory, kind):
    path = os.path.join(directory, "kustomization.yaml")
    (kustomization,) = read_objects(path)
    if kustomization.get("kind") != kind or kustomization.get("apiVersion") != KINDS[kind]:
        raise KustomizationError(f"{path}: expected a {kind} of {KINDS[kind]}")
    unknown = set(kustomization) - FIELDS
    if unknown:
        raise KustomizationError(f"{path}: fields that are not rendered here: {sorted(unknown)}")
    return kustomization


def _apply(directory, kustomization, objects):
    for name in kustomization.get("resources", []):
        path = os.path.join(directory, name)
        objects = objects + (render(path) if os.path.isdir(path) else read_objects(path))
    keys = [key_of(entry) for entry in objects]
    if len(set(keys)) != len(keys):
        raise KustomizationError(f"{directory}: an object is there twice: {sorted(keys)}")
    for name in kustomization.get("components", []):
        path = os.path.join(directory, name)
        objects = _apply(path, _read(path, "Component"), objects)
    for patch in kustomization.get("patches", []):
        objects = _patch(directory, patch, objects)
    for image in kustomization.get("images", []):
        _set_image(directory, image, objects)
    return objects


def _patch(directory, patch, objects):
    if set(patch) != {"path", "target"} or set(patch["target"]) != {"kind", "name"}:
        raise KustomizationError(f"{directory}: expected a patch with a path, and a target with kind and name: {patch}")
    target = patch["target"]["kind"], patch["target"]["name"]
    (operations,) = read_objects(os.path.join(directory, patch["path"]))
    patched = [jsonpatch.apply_patch(entry, operations) if key_of(entry) == target else entry for entry in objects]
    if target not in map(key_of, objects):
        raise KustomizationError(f"{directory}: nothing to patch by {patch['path']}: {target}")
    return patched


def _set_image(directory, image, objects):
    if set(image) != {"name", "newName", "newTag"}:
        raise KustomizationError(f"{directory}: expected an image with name, newName and newTag: {image}")
    found = False
    for entry in objects:
        for container in entry.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            if container["image"].partition(":")[0] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
                found = True
    if not found:
        raise KustomizationError(f"{directory}: no container has the image {image['name']}")
