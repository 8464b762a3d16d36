"""The Kubernetes manifests: they render, fit the cluster's schemas, and agree with each other and with the daemon."""

import os
import re
import shutil
import subprocess
import sys
import unittest

import kubernetes_validate
import yaml

sys.path.insert(0, os.path.dirname(__file__))
import daemon_flags as daemon  # noqa: E402
import kustomization  # noqa: E402

# Image volumes are on by themselves from the first of these on.
CLUSTER_VERSIONS = ["1.35", "1.36", "1.37"]
MAX_QUEUE_SHARE = 0.5


def overlay_path(name):
    return daemon.deploy("kubernetes", "overlays", name)


class Overlay:
    """An overlay's objects, by kind and name."""

    def __init__(self, name):
        self.name = name
        self.objects = {kustomization.key_of(entry): entry for entry in kustomization.render(overlay_path(name))}
        self.stateful_set = self.objects["StatefulSet", "cipherd"]["spec"]
        self.pod = self.stateful_set["template"]["spec"]
        self.pod_labels = self.stateful_set["template"]["metadata"]["labels"]
        (self.container,) = self.pod["containers"]
        self.flags = daemon.parse_flags(self.container["args"])

    def of_kind(self, kind):
        return [entry for (other, _), entry in self.objects.items() if other == kind]


def selects(selector, labels):
    """A selector that is empty selects everything, which none of ours is meant to."""
    return bool(selector) and selector.items() <= labels.items()


class OverlayTest:
    """What holds of each overlay; the classes at the end name it."""

    name = ""
    has_gpu = False

    def setUp(self):
        self.overlay = Overlay(self.name)

    def test_objects_fit_the_schemas_of_kubernetes(self):
        overlay = self.overlay
        for key, entry in overlay.objects.items():
            if key[0] == "ServiceMonitor":
                continue
            for version in CLUSTER_VERSIONS:
                kubernetes_validate.validate(entry, version, strict=True)

    def test_a_field_that_does_not_exist_does_not_fit(self):
        entry = self.overlay.objects["StatefulSet", "cipherd"]
        entry["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["grcp"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(entry, CLUSTER_VERSIONS[-1], strict=True)

    @unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
    def test_kubectl_renders_the_same(self):
        overlay = self.overlay
        text = subprocess.run(["kubectl", "kustomize", overlay_path(overlay.name)],
                              check=True, capture_output=True, text=True).stdout
        rendered = {kustomization.key_of(entry): entry for entry in yaml.safe_load_all(text)}
        self.assertEqual(rendered, overlay.objects)

    def test_client_certificates_are_a_component_of_any_overlay(self):
        component = daemon.deploy("kubernetes", "components", "client-certificates", "arguments.yaml")
        (operations,) = kustomization.read_objects(component)
        overlay = self.overlay
        patched = kustomization.jsonpatch.apply_patch(overlay.objects["StatefulSet", "cipherd"], operations)
        flags = daemon.parse_flags(patched["spec"]["template"]["spec"]["containers"][0]["args"])
        self.assertEqual(flags["tls-client-ca"], "/tls/ca.crt")

    def test_tokens_are_a_component_of_any_overlay(self):
        component = daemon.deploy("kubernetes", "components", "tokens", "arguments.yaml")
        (operations,) = kustomization.read_objects(component)
        patched = kustomization.jsonpatch.apply_patch(self.overlay.objects["StatefulSet", "cipherd"], operations)
        for version in CLUSTER_VERSIONS:
            kubernetes_validate.validate(patched, version, strict=True)
        pod = patched["spec"]["template"]["spec"]
        flags = daemon.parse_flags(pod["containers"][0]["args"])
        self.assertLessEqual({"--" + flag for flag in flags}, daemon.known_flags())
        self.assertTrue(flags["token-issuer"] and flags["token-audience"])
        mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
        mount = mounts[flags["token-keys"]]
        self.assertTrue(mount["readOnly"])
        (volume,) = [volume for volume in pod["volumes"] if volume["name"] == mount["name"]]
        self.assertIn("configMap", volume)

    def test_a_pod_may_nothing(self):
        overlay = self.overlay
        pod = overlay.pod["securityContext"]
        self.assertIs(pod["runAsNonRoot"], True)
        self.assertGreater(pod["runAsUser"], 0)
        self.assertEqual(pod["seccompProfile"], {"type": "RuntimeDefault"})
        # Otherwise each mount opens the directory of the keys to the group, and the daemon refuses that.
        self.assertEqual(pod["fsGroupChangePolicy"], "OnRootMismatch")
        self.assertEqual(overlay.container["securityContext"], {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        })
        self.assertIs(overlay.pod["automountServiceAccountToken"], False)

    def test_the_user_is_that_of_the_image(self):
        with open(os.path.join(daemon.SOURCE, "Dockerfile")) as file:
            users = {line.split()[1] for line in file if line.startswith("USER ")}
        overlay = self.overlay
        pod = overlay.pod["securityContext"]
        self.assertEqual(users, {f"{pod['runAsUser']}:{pod['runAsGroup']}"})

    def test_probes_ask_the_port_of_health_for_the_daemon(self):
        overlay = self.overlay
        port = int(overlay.flags["health-listen"].rpartition(":")[2])
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(overlay.container[probe]["grpc"], {"port": port}, probe)
        readiness, liveness = overlay.container["readinessProbe"], overlay.container["livenessProbe"]
        patience = [probe["periodSeconds"] * probe["failureThreshold"] for probe in (readiness, liveness)]
        self.assertLess(patience[0], patience[1], "out of the service long before it is restarted")
        # Who watches readiness only must have heard before requests are refused.
        self.assertGreaterEqual(float(overlay.flags["lame-duck"]), patience[0])

    def test_the_daemon_leaves_before_it_is_killed(self):
        overlay = self.overlay
        needed = (float(overlay.flags["lame-duck"]) + float(overlay.flags["drain-timeout"])
                  + daemon.SECONDS_AFTER_DRAIN)
        self.assertGreaterEqual(overlay.pod["terminationGracePeriodSeconds"], needed + 10)

    def test_volumes_are_where_the_daemon_looks(self):
        config = daemon.image_config()
        overlay = self.overlay
        mounts = {mount["name"]: mount for mount in overlay.container["volumeMounts"]}
        claims = {claim["metadata"]["name"] for claim in overlay.stateful_set["volumeClaimTemplates"]}
        self.assertEqual(set(mounts), claims | {volume["name"] for volume in overlay.pod["volumes"]})
        self.assertEqual(mounts["programs"]["mountPath"], config["programs"])
        self.assertTrue(mounts["programs"]["readOnly"])
        self.assertEqual(mounts["keys"]["mountPath"], os.path.dirname(config["key-directory"]))
        for flag in ("tls-cert", "tls-key"):
            self.assertEqual(os.path.dirname(overlay.flags[flag]), mounts["tls"]["mountPath"])
        (claim,) = overlay.stateful_set["volumeClaimTemplates"]
        size = daemon.parse_bytes(claim["spec"]["resources"]["requests"]["storage"])
        self.assertLess(daemon.parse_bytes(overlay.flags["key-file-budget"]), size)

    def test_budgets_fit_the_memory_of_the_container(self):
        # For the process itself: code, heap, threads, and with a GPU the driver.
        own_bytes = 4 << 30 if self.has_gpu else 1 << 30
        overlay = self.overlay
        resources = overlay.container["resources"]
        limit = daemon.parse_bytes(resources["limits"]["memory"])
        self.assertEqual(resources["requests"]["memory"], resources["limits"]["memory"])
        budget = daemon.host_budget_bytes(overlay.flags, device_is_host=not self.has_gpu)
        self.assertLessEqual(budget + own_bytes, limit)
        for keys, pool in (("key-host-memory", "pinned-memory"), ("key-device-memory", "device-memory")):
            self.assertLess(daemon.parse_bytes(overlay.flags[keys]), daemon.parse_bytes(overlay.flags[pool]))

    def test_services_select_the_pods_and_their_ports(self):
        overlay = self.overlay
        ports = {port["name"]: port["containerPort"] for port in overlay.container["ports"]}
        config = daemon.image_config() | overlay.flags
        for name, flag in (("grpc", "listen"), ("health", "health-listen"), ("metrics", "metrics-listen")):
            self.assertEqual(ports[name], int(config[flag].rpartition(":")[2]))
        services = overlay.of_kind("Service")
        self.assertEqual(len(services), 2)
        for service in services:
            self.assertTrue(selects(service["spec"]["selector"], overlay.pod_labels))
            for port in service["spec"]["ports"]:
                self.assertEqual(port["port"], ports[port["targetPort"]])
        replicas = overlay.objects["Service", overlay.stateful_set["serviceName"]]
        self.assertEqual(replicas["spec"]["clusterIP"], "None")
        # Keys are where a client was the last time.
        self.assertEqual(overlay.objects["Service", "cipherd"]["spec"]["sessionAffinity"], "ClientIP")

    def test_policies_select_the_pods_and_let_nothing_out(self):
        overlay = self.overlay
        ports = {port["name"] for port in overlay.container["ports"]}
        opened = set()
        for policy in overlay.of_kind("NetworkPolicy"):
            self.assertTrue(selects(policy["spec"]["podSelector"]["matchLabels"], overlay.pod_labels))
            self.assertNotIn("egress", policy["spec"])
            for rule in policy["spec"]["ingress"]:
                self.assertTrue(all(peer for peer in rule["from"]), "an empty peer is everyone")
                opened.update(port["port"] for port in rule["ports"])
        self.assertEqual(opened, {"grpc", "metrics"})
        self.assertLessEqual(opened, ports)
        self.assertIn("Egress", overlay.objects["NetworkPolicy", "cipherd"]["spec"]["policyTypes"])
        (budget,) = overlay.of_kind("PodDisruptionBudget")
        self.assertTrue(selects(budget["spec"]["selector"]["matchLabels"], overlay.pod_labels))

    def test_the_service_monitor_finds_the_metrics(self):
        # The operator's schema is not among Kubernetes'; these are its fields.
        overlay = self.overlay
        monitor = overlay.objects["ServiceMonitor", "cipherd"]
        self.assertEqual(monitor["apiVersion"], "monitoring.coreos.com/v1")
        self.assertEqual(set(monitor), {"apiVersion", "kind", "metadata", "spec"})
        self.assertEqual(set(monitor["spec"]), {"selector", "endpoints"})
        (endpoint,) = monitor["spec"]["endpoints"]
        self.assertEqual(set(endpoint), {"port", "path", "interval", "scrapeTimeout"})
        interval, timeout = (int(endpoint[name].removesuffix("s")) for name in ("interval", "scrapeTimeout"))
        self.assertLess(timeout, interval)
        self.assertEqual(endpoint["path"], "/metrics")
        selector = monitor["spec"]["selector"]["matchLabels"]
        (service,) = [s for s in overlay.of_kind("Service") if selects(selector, s["metadata"]["labels"])]
        self.assertIn(endpoint["port"], {port["name"] for port in service["spec"]["ports"]})

    def test_the_autoscaler_asks_for_what_the_adapter_makes(self):
        (values,) = kustomization.read_objects(
            daemon.deploy("kubernetes", "components", "autoscaling", "prometheus-adapter.yaml"))
        (rule,) = values["rules"]["custom"]
        capacity = int(daemon.default_of("--queue-capacity"))
        overlay = self.overlay
        autoscaler = overlay.objects["HorizontalPodAutoscaler", "cipherd"]["spec"]
        target = autoscaler["scaleTargetRef"]
        self.assertIn((target["kind"], target["name"]), overlay.objects)
        # Otherwise every apply sets it back.
        self.assertNotIn("replicas", overlay.stateful_set)
        (metric,) = autoscaler["metrics"]
        name = metric["pods"]["metric"]["name"]
        self.assertEqual(rule["name"]["as"], name)
        self.assertTrue(rule["seriesQuery"].startswith(name + "{"))
        self.assertEqual(set(rule["resources"]["overrides"]), {"namespace", "pod"})
        self.assertLessEqual(int(metric["pods"]["target"]["averageValue"]), MAX_QUEUE_SHARE * capacity)

    def test_images_have_the_version_of_the_project(self):
        version = daemon.project_version()
        overlay = self.overlay
        (programs,) = [volume for volume in overlay.pod["volumes"] if volume["name"] == "programs"]
        for image in (overlay.container["image"], programs["image"]["reference"]):
            self.assertEqual(image.partition(":")[2], version)


class CpuTest(OverlayTest, unittest.TestCase):
    name = "cpu"

    def test_no_gpu_is_asked_for(self):
        self.assertEqual(self.overlay.flags["device"], "cpu")
        self.assertNotIn("nvidia.com/gpu", self.overlay.container["resources"]["limits"])


class GpuTest(OverlayTest, unittest.TestCase):
    name = "gpu"
    has_gpu = True

    def test_the_daemon_uses_the_gpu_that_the_container_is_given(self):
        self.assertEqual(self.overlay.flags["device"], "cuda:all")
        self.assertEqual(self.overlay.container["resources"]["limits"]["nvidia.com/gpu"], "1")
        self.assertTrue(self.overlay.container["image"].startswith("cipherd-cuda:"))


class GatewayTest(unittest.TestCase):
    """The components gateway and shared-keys, on an overlay."""

    @classmethod
    def setUpClass(cls):
        with daemon.temporary_directory() as directory:
            with open(os.path.join(directory, "kustomization.yaml"), "w") as file:
                yaml.safe_dump({
                    "apiVersion": kustomization.KINDS["Kustomization"],
                    "kind": "Kustomization",
                    "resources": [overlay_path("cpu")],
                    "components": [daemon.deploy("kubernetes", "components", name) for name in ("shared-keys", "gateway")],
                }, file)
            cls.objects = {kustomization.key_of(entry): entry for entry in kustomization.render(directory)}
        cls.replicas = cls.objects["StatefulSet", "cipherd"]["spec"]
        cls.pod = cls.objects["Deployment", "cipherd-gateway"]["spec"]["template"]
        (cls.container,) = cls.pod["spec"]["containers"]
        cls.config = cls.objects["ConfigMap", "cipherd-gateway"]["data"]["haproxy.cfg"]

    def test_objects_fit_the_schemas_of_kubernetes(self):
        for key, entry in self.objects.items():
            if key[0] != "ServiceMonitor":
                for version in CLUSTER_VERSIONS:
                    kubernetes_validate.validate(entry, version, strict=True)

    def test_replicas_share_one_directory(self):
        (container,) = self.replicas["template"]["spec"]["containers"]
        self.assertIn("shared-key-directory", daemon.parse_flags(container["args"]))
        self.assertNotIn("volumeClaimTemplates", self.replicas)
        volumes = {volume["name"]: volume for volume in self.replicas["template"]["spec"]["volumes"]}
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, set(volumes))
        claim = self.objects["PersistentVolumeClaim", volumes["keys"]["persistentVolumeClaim"]["claimName"]]["spec"]
        self.assertEqual(claim["accessModes"], ["ReadWriteMany"])
        flags = daemon.parse_flags(container["args"])
        self.assertLess(daemon.parse_bytes(flags["key-file-budget"]),
                        daemon.parse_bytes(claim["resources"]["requests"]["storage"]))

    def test_the_configuration_is_the_one_that_is_tested(self):
        with open(daemon.deploy("gateway", "haproxy.cfg")) as file:
            shipped = file.read()
        before, _, _ = shipped.partition("    server cipherd-0 ")
        ours, _, places = self.config.partition("    # Places for as many")
        self.assertEqual(ours, before.replace("bind 127.0.0.1:7480", "bind :7480"))
        servers = re.findall(r"^    server (\S+) \"(\S+)\" id (\d+) resolvers cluster init-addr none$", places, re.MULTILINE)
        name = self.replicas["serviceName"]
        self.assertEqual(servers, [
            (f"cipherd-{number}", f"cipherd-{number}.{name}.${{NAMESPACE}}.svc.cluster.local:7480", str(number + 1))
            for number in range(self.objects["HorizontalPodAutoscaler", "cipherd"]["spec"]["maxReplicas"])])

    def test_haproxy_takes_the_configuration(self):
        directory = self.enterContext(daemon.temporary_directory())
        certificate, key = os.path.join(directory, "tls.pem"), os.path.join(directory, "tls.key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x",
             "-keyout", key, "-out", certificate], check=True, capture_output=True)
        with open(certificate, "a") as both, open(key) as file:
            both.write(file.read())
        config = os.path.join(directory, "haproxy.cfg")
        with open(config, "w") as file:
            file.write(re.sub(r"/etc/cipherd/gateway/\w+\.pem", certificate, self.config))
        run = subprocess.run(["/usr/sbin/haproxy", "-c", "-f", config], env={"NAMESPACE": "default"},
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_what_the_gateway_names_is_there(self):
        (port,) = self.container["ports"]
        self.assertEqual(re.findall(r"^    bind :(\d+) ", self.config, re.MULTILINE), [str(port["containerPort"])])
        service = self.objects["Service", "cipherd-gateway"]["spec"]
        labels = self.pod["metadata"]["labels"]
        self.assertTrue(selects(service["selector"], labels))
        self.assertFalse(selects(self.objects["Service", "cipherd"]["spec"]["selector"], labels))
        (budget,) = [entry for (kind, name), entry in self.objects.items()
                     if (kind, name) == ("PodDisruptionBudget", "cipherd-gateway")]
        self.assertTrue(selects(budget["spec"]["selector"]["matchLabels"], labels))
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        self.assertEqual(set(mounts), {volume["name"] for volume in self.pod["spec"]["volumes"]})
        self.assertEqual(set(map(os.path.dirname, re.findall(r"/etc/\S+", self.config))), {mounts["certificates"]})
        self.assertEqual(self.container["args"][1], os.path.join(mounts["config"], "haproxy.cfg"))

    def test_the_gateway_may_reach_replicas_and_they_take_it(self):
        labels = self.pod["metadata"]["labels"]
        policy = self.objects["NetworkPolicy", "cipherd-gateway"]["spec"]
        self.assertTrue(selects(policy["podSelector"]["matchLabels"], labels))
        to_replicas, to_names = policy["egress"]
        (replicas,) = to_replicas["to"]
        self.assertTrue(selects(replicas["podSelector"]["matchLabels"], self.replicas["template"]["metadata"]["labels"]))
        self.assertEqual({port["port"] for port in to_names["ports"]}, {53})
        (rule,) = self.objects["NetworkPolicy", "cipherd"]["spec"]["ingress"]
        self.assertTrue(any(selects(peer["podSelector"]["matchLabels"], labels) for peer in rule["from"]
                            if "podSelector" in peer))


class FilesTest(unittest.TestCase):
    def test_every_file_is_part_of_an_overlay_or_of_a_component(self):
        named = {"prometheus-adapter.yaml"}
        for directory, _, files in os.walk(daemon.deploy("kubernetes")):
            if "kustomization.yaml" not in files:
                continue
            (entry,) = kustomization.read_objects(os.path.join(directory, "kustomization.yaml"))
            named.update(entry.get("resources", []), (patch["path"] for patch in entry.get("patches", [])))
            self.assertLessEqual(set(files) - {"kustomization.yaml"}, named, directory)

    def test_a_kustomization_that_cannot_be_rendered_is_refused(self):
        for wrong in ({"namePrefix": "a-"}, {"kind": "Component"}, {"apiVersion": "v1"}):
            with self.subTest(wrong=wrong):
                entry = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"} | wrong
                directory = self.enterContext(daemon.temporary_directory())
                with open(os.path.join(directory, "kustomization.yaml"), "w") as file:
                    yaml.safe_dump(entry, file)
                with self.assertRaises(kustomization.KustomizationError):
                    kustomization.render(directory)


if __name__ == "__main__":
    unittest.main(verbosity=2)
