"""How calls, objects, secrets and the interpreter end."""

from __future__ import annotations

import copy
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import cipherd
from conftest import Daemon

PREAMBLE = """
import asyncio, gc, os, signal, sys, threading, time
import numpy as np
import cipherd

def connect():
    return cipherd.connect(sys.argv[1], allow_insecure_contexts=True)

# Minutes of work.
many = np.zeros((1_000_000, 4))
inputs = {"a": many, "b": many}
one = {"a": np.ones(4), "b": np.ones(4)}

def session_of(client):
    session = client.session("mix")
    session.upload_keys()
    return session

def interrupt_soon():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
"""


def run(daemon: Daemon, script: str) -> str:
    """What a script prints, in an interpreter that must end by itself and without an error."""
    process = subprocess.run(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-c",
            PREAMBLE + textwrap.dedent(script),
            daemon.target,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, (process.returncode, process.stdout, process.stderr)
    assert process.stderr == ""
    return process.stdout


def test_ctrl_c_ends_an_evaluation(daemon: Daemon) -> None:
    printed = run(
        daemon,
        """
        session = session_of(connect())
        interrupt_soon()
        start = time.monotonic()
        try:
            session.evaluate(inputs)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 20)
        # It is of use afterwards.
        print(session.evaluate(one)["sum"].round(3))
        """,
    )
    assert printed == "interrupted True\n[2. 2. 2. 2.]\n"


def test_an_interrupt_may_come_at_any_time(daemon: Daemon) -> None:
    printed = run(
        daemon,
        """
        session = session_of(connect())
        given = np.ones((400, 4))
        interrupted = 0
        for k in range(300):
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-4 * (k % 20) ** 2)
                session.evaluate({"a": given, "b": given})
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
        print(interrupted > 50, session.evaluate(one)["sum"].round(3))
        """,
    )
    assert printed == "True [2. 2. 2. 2.]\n"


def test_ctrl_c_ends_an_upload_and_a_connection(daemon: Daemon) -> None:
    printed = run(
        daemon,
        """
        client = connect()
        session = client.session("fashion_mlp")
        def progress(sent, total):
            if sent == total: return
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        try:
            session.upload_keys(progress)
        except KeyboardInterrupt:
            print("interrupted", session.key_set_id == "")
        interrupt_soon()
        start = time.monotonic()
        try:
            cipherd.connect("unix:/nowhere/none.sock", timeout=600)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 20)
        """,
    )
    assert printed == "interrupted True\ninterrupted True\n"


def test_other_signals_are_handled_meanwhile(daemon: Daemon) -> None:
    printed = run(
        daemon,
        """
        session = session_of(connect())
        handled = []
        signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(number))
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        given = np.ones((4000, 4))
        print((session.evaluate({"a": given, "b": given})["sum"].round(3) == 2).all())
        while not handled: pass
        print(len(handled))
        """,
    )
    assert printed == "True\n1\n"


@pytest.mark.parametrize(
    "ending",
    ["", "sys.exit(0)", "del session, client; gc.collect()", "client.close()", "session.close()"],
)
def test_the_interpreter_ends_while_evaluations_run(daemon: Daemon, ending: str) -> None:
    # asyncio's loop is left while a task waits; a daemon thread and a plain callback are in C++.
    printed = run(
        daemon,
        f"""
        client = connect()
        session = session_of(client)
        loop = asyncio.new_event_loop()
        task = loop.create_task(session.evaluate_async(inputs))
        task._log_destroy_pending = False
        loop.run_until_complete(asyncio.sleep(0.05))
        def evaluate():
            try:
                session.evaluate(inputs)
            except (cipherd.Error, NameError):
                pass
        threading.Thread(target=evaluate, daemon=True).start()
        time.sleep(0.05)
        print("ends", flush=True)
        {ending}
        """,
    )
    assert printed == "ends\n"


def test_the_interpreter_ends_with_everything_left_open(daemon: Daemon) -> None:
    for _ in range(5):
        run(
            daemon,
            """
            client = connect()
            session = session_of(client)
            print(session.evaluate(one)["sum"].shape)
            """,
        )


def test_closing_ends_the_calls_of_others(mix: cipherd.Session) -> None:
    many = np.zeros((1_000_000, 4))
    raised: list[BaseException] = []

    def evaluate() -> None:
        try:
            mix.evaluate({"a": many, "b": many})
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=evaluate)
    thread.start()
    time.sleep(0.1)
    mix.close()
    thread.join()
    (error,) = raised
    # Closed while it ran, or before it began.
    assert isinstance(error, (cipherd.CancelledError, cipherd.FailedPreconditionError))
    with pytest.raises(cipherd.FailedPreconditionError, match="session: closed"):
        mix.evaluate({"a": np.ones(4), "b": np.ones(4)})


def test_closing_from_a_callback_is_refused_not_a_deadlock(client: cipherd.Client) -> None:
    with client.session("fashion_mlp") as session:
        with pytest.raises(cipherd.FailedPreconditionError, match="callback"):
            session.upload_keys(lambda sent, total: session.close())


def test_objects_keep_what_they_need(daemon: Daemon) -> None:
    client = cipherd.connect(daemon.target, allow_insecure_contexts=True)
    session = client.session("mix")
    of_client = weakref.ref(client)
    del client
    gc.collect()
    assert of_client() is None
    session.upload_keys()
    assert session.evaluate({"a": np.ones(4), "b": np.ones(4)})["sum"].shape == (4,)
    program = session.program
    outputs = session.evaluate({"a": np.ones(4), "b": np.ones(4)})
    del session
    gc.collect()
    assert program.name == "mix"
    np.testing.assert_allclose(outputs["sum"], 2 * np.ones(4), atol=1e-4)


def test_a_forked_child_is_told_to_connect_itself(daemon: Daemon) -> None:
    printed = run(
        daemon,
        """
        client = connect()
        session = session_of(client)
        pid = os.fork()
        if pid == 0:
            for call in (client.programs, lambda: session.evaluate(one), lambda:
            client.session("mix"), connect):
                try:
                    call()
                except cipherd.FailedPreconditionError as error:
                    print("fork()" in str(error), flush=True)
            # What was inherited goes without waiting for threads that are not there.
            session.close()
            client.close()
            del session, client
            gc.collect()
            sys.exit(0)
        print(os.waitpid(pid, 0)[1], session.evaluate(one)["sum"].shape)
        """,
    )
    assert printed == "True\n" * 4 + "0 (4,)\n"


def test_a_child_that_is_forked_before_connects(daemon: Daemon) -> None:
    printed = run(
        daemon,
        """
        pid = os.fork()
        session = session_of(connect())
        shape = session.evaluate(one)["sum"].shape
        # One after the other: a line may take two writes.
        status = os.waitpid(pid, 0)[1] if pid else "child"
        print(shape, status, flush=True)
        """,
    )
    assert printed == "(4,) child\n(4,) 0\n"


# Whether the memory of a process holds bytes.
def holds(pid: int, wanted: bytes) -> bool:
    found = False
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            fields = line.split()
            if "r" not in fields[1] or fields[-1] in ("[vvar]", "[vsyscall]", "[vdso]"):
                continue
            begin, end = (int(address, 16) for address in fields[0].split("-"))
            memory.seek(begin)
            try:
                found = found or wanted in memory.read(end - begin)
            except OSError:  # a mapping that cannot be read
                continue
    return found


def test_the_secret_key_is_wiped_when_the_session_closes(
    daemon: Daemon, tmp_path: pathlib.Path
) -> None:
    script = """
    session = session_of(connect())
    session.save(sys.argv[2])
    print(session.evaluate(one)["sum"].shape, flush=True)
    sys.stdin.readline()
    session.close()
    print("closed", flush=True)
    sys.stdin.readline()
    """
    with subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script), daemon.target, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "(4,)\n"
        # The file ends with the coefficients, a byte each, and the hash.
        coefficients = (tmp_path / "secret.key").read_bytes()[-32 - 1024 : -32]
        assert set(coefficients) == {0, 1, 255}
        part = coefficients[300:500]
        assert holds(process.pid, part), "the search finds a key that is there"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "closed\n"
        assert not holds(process.pid, part)
        process.stdin.write("\n")


def test_secrets_are_in_no_text_and_no_pickle(
    mix: cipherd.Session, client: cipherd.Client, tmp_path: pathlib.Path
) -> None:
    mix.save(tmp_path)
    with cipherd.Cipher.load(tmp_path, allow_insecure_contexts=True) as cipher:
        assert repr(mix) == "<cipherd.Session of mix, keys uploaded>"
        assert repr(cipher) == "<cipherd.Cipher for mix>"
        for one in (mix, cipher, client, mix.program):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(one)
            with pytest.raises(TypeError):
                copy.deepcopy(one)
        for inner in (mix._session, cipher._cipher, client._client):
            with pytest.raises(TypeError):
                pickle.dumps(inner)


def test_errors_travel_between_processes() -> None:
    error = cipherd.OverloadedError(
        "full", code="RESOURCE_EXHAUSTED", reason="OVERLOADED", path="", retry_delay=2.5
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cipherd.OverloadedError
    assert vars(again) == vars(error)
    assert str(again) == "full [OVERLOADED]"


def test_results_come_and_go_without_a_leak(mix: cipherd.Session) -> None:
    def resident_bytes() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    given = np.ones((2000, 4))
    inputs = {"a": given, "b": given}
    mix.evaluate(inputs)
    before = resident_bytes()
    for _ in range(10):
        mix.evaluate(inputs)
    # Ten times the inputs' ciphertexts, 2 x 250 of 32 KiB, would be 160 MiB.
    assert resident_bytes() - before < 40 << 20
