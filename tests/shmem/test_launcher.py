# SPDX-License-Identifier: MIT
"""`triton-dist run` and torchrun, end to end: output, exit codes, failures, interrupts, nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triton_dist.errors import ShmemConfigError
from triton_dist.shmem import launcher

pytestmark = pytest.mark.processes

RUN = [sys.executable, "-m", "triton_dist.cli", "run"]

HELLO = r"""
import sys, torch
from triton_dist import shmem
shmem.init()
me, n = shmem.my_pe(), shmem.n_pes()
data = shmem.create_tensor((3,), torch.int32)
shmem.put(data, torch.full((3,), me, dtype=torch.int32), (me + 1) % n)
shmem.barrier_all()
sys.stdout.write(f"{me}/{n} {data.tolist()} {sys.argv[1:]}\n")
shmem.finalize()
"""

FAIL = """
import os, signal, sys, time, torch
from triton_dist import shmem
shmem.init()
signals = shmem.create_signals(1)
if shmem.my_pe() == 1:
    if sys.argv[1] == "raise": raise ValueError("oh no")
    if sys.argv[1] == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "forget": sys.exit(0)
shmem.wait_signal(signals[0], 1)
"""


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(text)
        return str(path)

    return write


def run(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *args], capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})


@pytest.mark.parametrize("n", [1, 3])
def test_a_script(n: int, script) -> None:
    done = run("-n", str(n), script(HELLO), "--flag", "-n", "x")
    assert done.returncode == 0, done.stderr
    for pe in range(n):
        assert f"{pe}/{n} {[(pe - 1) % n] * 3} ['--flag', '-n', 'x']" in done.stdout
    assert done.stderr == ""


def test_torchrun(script) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script(HELLO)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    # Both write to one pipe, perhaps in the middle of each other's lines.
    assert all(f"{pe}/2 {[1 - pe] * 3} []" in done.stdout for pe in range(2))


def test_output_with_the_number_of_the_pe(script) -> None:
    done = run("-n", "2", "--prefix", script("import os, sys\nprint('out')\nprint('err', file=sys.stderr)\n"))
    assert sorted(done.stdout.split("\n")) == ["", "[PE 0] out", "[PE 1] out"]
    assert sorted(done.stderr.split("\n")) == ["", "[PE 0] err", "[PE 1] err"]


def test_a_module() -> None:
    assert run("-n", "1", "-m", "json.tool", "--help").stdout.startswith("usage: ")


@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        ("raise", 1, "PE 1 of 2 exited with code 1\nits error (the traceback is above): ValueError: oh no\n"),
        ("kill", 137, "PE 1 of 2 killed by SIGKILL (signal 9)\n"),
    ],
)
def test_a_failure_ends_all_and_is_named(how: str, code: int, told: str, script) -> None:
    start = time.monotonic()
    done = run("-n", "2", script(FAIL), how)
    assert time.monotonic() - start < 20
    assert done.returncode == code
    assert "triton-dist run: " + told in done.stderr
    reason = {
        "raise": "exited with code 1: ValueError: oh no",
        "kill": "killed by SIGKILL (signal 9)",
    }[how]
    assert f"PeerDied: PE 0: PE 1 is gone ({reason}" in done.stderr
    if how == "raise":
        assert done.stderr.rstrip().endswith("ValueError: oh no")
        # Each PE's traceback once.
        assert done.stderr.count("Traceback (most recent call last)") == 2


def test_a_pe_that_leaves_without_finalize(script) -> None:
    done = run("-n", "2", script(FAIL), "forget")
    assert done.returncode == 1  # that of the PE which missed it
    assert "PE 1 is gone (exited with code 0: without shmem.finalize())" in done.stderr


def test_a_pe_that_ends_before_init(script) -> None:
    text = "import os, sys\nfrom triton_dist import shmem\nif os.environ['RANK'] == '1': sys.exit(0)\nshmem.init()\n"
    start = time.monotonic()
    done = run("-n", "3", script(text))
    assert done.returncode == 1
    assert "PE 1 exited with code 0 before it called shmem.init" in done.stderr
    assert time.monotonic() - start < 60  # not the limit of shmem.init


def test_pes_that_do_not_react_are_ended(script) -> None:
    text = "import os, sys, time, signal\nif os.environ['RANK'] == '0': sys.exit(4)\ntime.sleep(60)\n"
    start = time.monotonic()
    assert run("-n", "2", "--grace", "0.2", script(text)).returncode == 4
    assert time.monotonic() - start < 15


HANG = r"""
import os, time
os.write(1, f"{os.getpid()}\n".encode())  # in one go: the PEs share a pipe
time.sleep(60)
"""


def start(script_path: str, n: int = 3) -> tuple[subprocess.Popen[str], list[int]]:
    job = subprocess.Popen(
        [*RUN, "-n", str(n), script_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert job.stdout is not None
    return job, [int(job.stdout.readline()) for _ in range(n)]


def all_end(pids: list[int]) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() and "Z" not in _status(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_launcher_ends_all(number: int, code: int, script) -> None:
    job, pids = start(script(HANG))
    job.send_signal(number)
    _, err = job.communicate(timeout=20)
    assert job.returncode == code
    assert err.rstrip().endswith(f"triton-dist run: ended by {signal.Signals(number).name}")
    assert "launcher.py" not in err
    assert all_end(pids)


def test_pes_do_not_outlive_a_killed_launcher(script) -> None:
    job, pids = start(script(HANG))
    job.kill()
    job.communicate(timeout=20)
    assert all_end(pids)


def test_what_a_pe_started_ends_with_it(script) -> None:
    text = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "os.write(1, f'{child.pid}\\n'.encode())\n"
        "time.sleep(60)\n"
    )
    job, pids = start(script(text), 2)
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=20)
    assert all_end(pids)


def test_torch_distributed_works_too(script) -> None:
    text = (
        "import torch, torch.distributed as dist\n"
        "from triton_dist import shmem\n"
        "dist.init_process_group('gloo')\n"
        "shmem.init()\n"
        "x = torch.ones(1) * shmem.my_pe()\n"
        "dist.all_reduce(x)\n"
        "assert x.item() == 1\n"
        "shmem.finalize()\n"
        "dist.destroy_process_group()\n"
    )
    done = run("-n", "2", script(text), env={"GLOO_SOCKET_IFNAME": "lo"})
    assert done.returncode == 0, done.stderr


def test_cores_are_shared_unless_told_otherwise(script) -> None:
    names = "OMP_NUM_THREADS OMP_WAIT_POLICY TRITON_DIST_NUM_THREADS"
    text = f"import os\nprint(*[os.environ[name] for name in '{names}'.split()])\n"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "TRITON_DIST_"))}
    command = [*RUN, "-n", "2", script(text)]
    share = max(1, (os.cpu_count() or 1) // 2)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.stdout == f"{share} passive {share}\n" * 2
    done = subprocess.run(command, capture_output=True, text=True, env={**env, "OMP_NUM_THREADS": "9"})
    assert done.stdout == f"9 passive {share}\n" * 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nnodes", "2", "x.py"], "all are on one node"),
        (["-n", "0", "x.py"], "one PE or more"),
        (["-n", "2", "missing.py"], "there is no script 'missing.py'"),
    ],
)
def test_refusals(args: list[str], message: str) -> None:
    with pytest.raises(ShmemConfigError, match=message):
        launcher.parse(args)


def test_only_the_script_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        launcher.parse([])
    assert capsys.readouterr().err.endswith("the following arguments are required: SCRIPT\n")


def test_refusals_on_the_command_line() -> None:
    done = run("-n", "2", "missing.py")
    assert done.returncode == 2
    assert done.stderr == "triton-dist: run: there is no script 'missing.py'.\n"
