"""The Open Inference Protocol as a client sees it that is not ours: tritonclient, from PyPI.

Starts the daemon with the repository's fashion_mlp, makes keys and ciphertexts by cipherctl, and compares what
comes back with what the daemon's own service gives for the same ciphertext, word for word.
"""

import json
import os
import queue
import shutil
import subprocess
import tempfile
import time
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

PROGRAM = "fashion_mlp"
START_SECONDS = 240
IN_FLIGHT = 8
REQUESTS = 32


class Daemon:
    """A daemon and a directory for the files of its clients."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="cipherd_open_inference_")
        port_file = self.path("port")
        self.log = open(self.path("log"), "wb")
        self.process = subprocess.Popen(
            [
                os.environ["CIPHERD_BINARY"],
                "--device", os.environ.get("CIPHERD_TEST_DEVICE", "cpu"),
                "--programs", os.environ["CIPHERD_PROGRAMS"],
                "--listen", "127.0.0.1:0",
                "--metrics-listen", "none",
                "--port-file", port_file,
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        # Said when it listens; the port file is there by then.
        if not self.process.stdout.readline():
            raise RuntimeError("cipherd has ended: " + self.text_of_log())
        with open(port_file) as file:
            self.address = "127.0.0.1:" + file.read().strip()

    def path(self, name):
        return os.path.join(self.directory, name)

    def text_of_log(self):
        with open(self.path("log")) as file:
            return file.read()

    def ctl(self, *arguments, online=False):
        command = [os.environ["CIPHERCTL_BINARY"], *arguments]
        if online:
            command += ["--server", self.address]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {run.stderr}")
        return run.stdout

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        finally:
            self.process.stdout.close()
            self.log.close()
            shutil.rmtree(self.directory)


class OpenInferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.stop_daemon)
        cls.client = triton.InferenceServerClient(cls.daemon.address)
        cls.addClassCleanup(cls.client.close)
        cls.await_ready()
        keys, path = cls.daemon.path("keys"), cls.daemon.path
        cls.daemon.ctl("keygen", "--program", PROGRAM, "--keys", keys, online=True)
        cls.daemon.ctl("put-keys", "--keys", keys, online=True)
        np.save(path("images.npy"), np.random.default_rng(7).random((8, 784)))
        cls.daemon.ctl(
            "encrypt", "--keys", keys, "--input", "images=" + path("images.npy"), "--output", path("in.ct"))
        cls.daemon.ctl("evaluate", "--keys", keys, "--input", path("in.ct"), "--output", path("own.ct"), online=True)
        cls.daemon.ctl("export-tensors", "--keys", keys, "--input", path("in.ct"), "--output", path("tensors"))
        cls.images = np.load(path("tensors/images.npy"))
        with open(path("keys/key_set_id")) as file:
            key_set_id = file.read().strip()
        cls.parameters = {"key_set_id": key_set_id, "context_id": cls.context_id()}

    @classmethod
    def stop_daemon(cls):
        if cls.daemon.stop() != 0:
            raise RuntimeError("cipherd did not end well")

    @classmethod
    def await_ready(cls):
        end = time.monotonic() + START_SECONDS
        while not cls.client.is_server_ready():
            if time.monotonic() > end or cls.daemon.process.poll() is not None:
                raise RuntimeError("cipherd is not ready: " + cls.daemon.text_of_log())
            time.sleep(0.05)

    @classmethod
    def context_id(cls):
        """The protocol's own property, which tritonclient has no field for: field 6 of ModelMetadataResponse."""
        call = grpc.insecure_channel(cls.daemon.address).unary_unary(
            "/inference.GRPCInferenceService/ModelMetadata",
            request_serializer=service_pb2.ModelMetadataRequest.SerializeToString,
            response_deserializer=bytes,
        )
        answer = call(service_pb2.ModelMetadataRequest(name=PROGRAM))
        # An entry of a map: key and value, each a length and its bytes.
        entry = answer.index(b"\x0a\x0acontext_id\x12\x40") + 14
        return answer[entry:entry + 64].decode()

    def input(self, array=None, name="images", datatype="UINT64"):
        array = self.images if array is None else array
        tensor = triton.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        return tensor

    def infer(self, tensor=None, model=PROGRAM, parameters=None, **arguments):
        return self.client.infer(
            model,
            [self.input() if tensor is None else tensor],
            parameters=self.parameters if parameters is None else parameters,
            **arguments,
        )

    def payload_of(self, name):
        """What stands between the header of one of cipherctl's files and its hash (client/files/FILES.md)."""
        with open(self.daemon.path(name), "rb") as file:
            content = file.read()
        header_bytes = int.from_bytes(content[8:12], "little")
        return content[12 + header_bytes:-32]

    def test_server_and_model_are_described(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_model_ready(PROGRAM))
        self.assertTrue(self.client.is_model_ready(PROGRAM, "1"))
        self.assertEqual(self.client.get_server_metadata().name, "cipherd")
        metadata = self.client.get_model_metadata(PROGRAM)
        self.assertEqual(metadata.platform, "cipherd")
        self.assertEqual(list(metadata.versions), ["1"])
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in metadata.inputs],
                         [("images", "UINT64", list(self.images.shape))])
        self.assertEqual([t.name for t in metadata.outputs], ["logits"])

    def test_result_is_that_of_the_daemons_own_service_and_decrypts(self):
        own = self.payload_of("own.ct")
        outputs = [triton.InferRequestedOutput("logits")]
        for arguments in ({}, {"model_version": "1"}, {"outputs": outputs}, {"client_timeout": 60}):
            result = self.infer(request_id="r1", **arguments)
            response = result.get_response()
            self.assertEqual(response.id, "r1")
            self.assertEqual(response.model_version, "1")
            logits = result.as_numpy("logits")
            self.assertEqual(logits.dtype, np.uint64)
            self.assertEqual(list(logits.shape), list(response.outputs[0].shape))
            self.assertEqual(logits.tobytes(), own)

        path = self.daemon.path
        np.save(path("logits.npy"), logits)
        self.daemon.ctl("import-tensors", "--keys", path("keys"), "--input", "logits=" + path("logits.npy"),
                        "--output", path("theirs.ct"))
        decrypted = [json.loads(self.daemon.ctl("decrypt", "--keys", path("keys"), "--input", path(name)))
                     for name in ("own.ct", "theirs.ct")]
        self.assertEqual(np.shape(decrypted[0]["logits"]), (8, 10))
        self.assertEqual(decrypted[0], decrypted[1])

    def test_eight_in_flight_all_get_their_result(self):
        own = self.payload_of("own.ct")
        tensor = self.input()
        results = queue.Queue()

        def start():
            self.client.async_infer(
                PROGRAM, [tensor], callback=lambda result, error: results.put((result, error)),
                parameters=self.parameters)

        begin = time.monotonic()
        for _ in range(IN_FLIGHT):
            start()
        for ended in range(REQUESTS):
            result, error = results.get(timeout=120)
            self.assertIsNone(error)
            self.assertEqual(result.as_numpy("logits").tobytes(), own)
            if ended + IN_FLIGHT < REQUESTS:
                start()
        seconds = time.monotonic() - begin
        print(f"{REQUESTS} requests, {IN_FLIGHT} in flight: {REQUESTS / seconds:.1f} a second")

    def test_a_compressed_message_is_refused(self):
        for algorithm in ("gzip", "deflate"):
            self.expect_refusal("UNIMPLEMENTED", "disabled", compression_algorithm=algorithm)

    def expect_refusal(self, code, text, **arguments):
        with self.assertRaises(InferenceServerException) as raised:
            self.infer(**arguments)
        self.assertEqual(raised.exception.status(), "StatusCode." + code)
        self.assertIn(text, raised.exception.message())

    def test_refusals_have_their_code_and_say_what_is_wrong(self):
        def parameters(**changed):
            return {**self.parameters, **changed}

        short = self.input()
        short._raw_content = short._raw_content[:-8]
        above = self.images.copy()
        above[1, 0, 5] = 1 << 62
        cases = [
            ("INVALID_ARGUMENT", "parameters['context_id']: expected", {"parameters": parameters(context_id="0" * 64)}),
            ("INVALID_ARGUMENT", "parameters['context_id']: expected", {"parameters": {}}),
            ("NOT_FOUND", "unknown key set", {"parameters": parameters(key_set_id="a" * 64)}),
            ("INVALID_ARGUMENT", "64 lower-case hexadecimal digits", {"parameters": parameters(key_set_id="mine")}),
            ("INVALID_ARGUMENT", "byte_count", {"tensor": short}),
            ("INVALID_ARGUMENT", "residues below the prime", {"tensor": self.input(above)}),
            ("INVALID_ARGUMENT", "inputs[0].datatype: expected UINT64",
             {"tensor": self.input(self.images.astype(np.int64), datatype="INT64")}),
            ("INVALID_ARGUMENT", "inputs[0].data.shape", {"tensor": self.input(self.images.reshape(4, 2, -1))}),
            ("INVALID_ARGUMENT", "dimensions", {"tensor": self.input(self.images.reshape(-1))}),
            ("INVALID_ARGUMENT", "inputs[0].name: expected one of 'images'", {"tensor": self.input(name="pixels")}),
            ("INVALID_ARGUMENT", "outputs[0].name: expected one of 'logits'",
             {"outputs": [triton.InferRequestedOutput("labels")]}),
            ("NOT_FOUND", "resnet", {"model": "resnet"}),
            ("NOT_FOUND", "version 2", {"model_version": "2"}),
            ("INVALID_ARGUMENT", "model_version", {"model_version": "latest"}),
        ]
        for code, text, arguments in cases:
            with self.subTest(text=text):
                self.expect_refusal(code, text, **arguments)
        self.assertEqual(self.infer().as_numpy("logits").tobytes(), self.payload_of("own.ct"))

    def test_refusals_carry_the_details_of_other_calls(self):
        stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(self.daemon.address))
        with self.assertRaises(grpc.RpcError) as raised:
            stub.ModelInfer(service_pb2.ModelInferRequest(model_name="resnet"))
        trailers = dict(raised.exception.trailing_metadata())
        self.assertIn(b"type.googleapis.com/cipherd.v1.ErrorDetail", trailers["grpc-status-details-bin"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
