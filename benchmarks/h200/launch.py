# SPDX-License-Identifier: MIT
"""Start PEs that share the GPUs of this machine: `launch.py -n 4 script.py ...`.

As torchrun does, but each PE gets its share of a GPU's multiprocessors when several run on one, and a limit ends
all of them: a kernel that waits for ever would hold the machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--pes", type=int, required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=200, help="seconds")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    port = free_port()
    command = [sys.executable, "-u", args.script, *args.rest]
    # Sessions of their own: PEs that hang are ended with all that they started.
    pes = [
        subprocess.Popen(command, env=environment(pe, args.pes, args.gpus, port), start_new_session=True)
        for pe in range(args.pes)
    ]
    status = wait(pes, time.monotonic() + args.timeout)
    if status:
        print(f"launch.py: {args.pes} PEs of {args.script}: status {status}", file=sys.stderr, flush=True)
    return status


def environment(pe: int, pes: int, gpus: int, port: int) -> dict[str, str]:
    own: dict[str, object] = {
        "RANK": pe, "LOCAL_RANK": pe, "WORLD_SIZE": pes, "LOCAL_WORLD_SIZE": pes,
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
    }  # fmt: skip
    if pes > gpus:
        own["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = 100 // -(-pes // gpus)
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(pes: list[subprocess.Popen[bytes]], deadline: float) -> int:
    """The status of the PE that failed first, 0 if none did, 124 at the deadline."""
    while any(pe.poll() is None for pe in pes):
        failed = [pe.returncode for pe in pes if pe.returncode not in (None, 0)]
        late = time.monotonic() > deadline
        if failed or late:
            # The others may have something to say about it.
            time.sleep(2 if failed else 0)
            for pe in pes:
                if pe.poll() is None:
                    os.killpg(pe.pid, signal.SIGKILL)
                    pe.wait()
            return failed[0] if failed else 124
        time.sleep(0.05)
    return next((pe.returncode for pe in pes if pe.returncode), 0)


if __name__ == "__main__":
    sys.exit(main())
