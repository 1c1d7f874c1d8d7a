#!/usr/bin/env python3
"""What one owner's growing programs cost the others.

Twelve programs of one owner grow as fast as they can, while another owner runs `1+1` in a session. Then the programs are deleted.

    benches/owners.py target/release/vm-system [FOLDER] [SECONDS] [--quota MB]

Prints the waits of the other owner, the size of the database and of its log, how each program ended, and how long each deletion took.
Needs no package; the daemon and its folder are this script's own.
"""

import hashlib
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PROGRAMS = 12
GROW = """
const kept = [];
for (;;) { kept.push('x'.repeat(2000) + kept.length); if (kept.length % 25000 === 0) kept.length = 5000; }
function main() {}
"""


class Client:
    def __init__(self, port, token):
        self.port, self.token, self.connection = port, token, None

    def ask(self, method, path, body=None, timeout=300):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        fields = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        self.connection.request(method, "/api/v1" + path, None if body is None else json.dumps(body), fields)
        response = self.connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None

    def made(self, path, body):
        status, value = self.ask("POST", path, body)
        assert status in (200, 201, 202), (path, status, value)
        return value


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def size(path):
    try:
        return os.stat(path).st_size / 2**20
    except FileNotFoundError:
        return 0


def main():
    args = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    quota = int(sys.argv[sys.argv.index("--quota") + 1]) if "--quota" in sys.argv else 1024
    args = [arg for arg in args if arg != str(quota)] if "--quota" in sys.argv else args
    binary = args[0]
    folder = args[1] if len(args) > 1 else tempfile.mkdtemp(prefix="owners-")
    seconds = float(args[2]) if len(args) > 2 else 30
    os.makedirs(folder, exist_ok=True)
    port = 20_000 + os.getpid() % 20_000
    tokens = "".join(
        f'[[token]]\nname = "{name}"\nrole = "user"\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n'
        for name in ("grower", "sibling")
    )
    with open(f"{folder}/tokens.toml", "w") as file:
        file.write(tokens)
    os.chmod(f"{folder}/tokens.toml", 0o600)
    work = f"{folder}/work"
    os.makedirs(work, exist_ok=True)
    extra = os.environ.get("OWNERS_CONFIG", "")
    with open(f"{folder}/config.toml", "w") as file:
        file.write(
            f'[[worktree_root]]\npath = "{work}"\nowners = ["sibling"]\n[http]\nlisten = ["127.0.0.1:{port}"]\ntokens = "{folder}/tokens.toml"\n'
            f"[durable]\ncheckpoint_ms = 100\n[retention]\nquota_mb = {quota}\n{extra}\n"
        )
    log = open(f"{folder}/log", "w")
    command = [binary, "serve", "--state-dir", f"{folder}/state", "--config", f"{folder}/config.toml"]
    if os.geteuid() == 0:
        # A daemon that root starts becomes another user, which must reach the folder.
        os.chmod(folder, 0o755)
        user = os.environ.get("VM_SYSTEM_USER", "nobody")
        shutil.chown(f"{folder}/tokens.toml", user)
        command += ["--user", user, "--root-files"]
    daemon = subprocess.Popen(command, stderr=log, env={**os.environ, "XDG_RUNTIME_DIR": folder})
    database = f"{folder}/state/vm-system.db"
    try:
        sibling, grower = Client(port, "sibling"), Client(port, "grower")
        until = time.monotonic() + 20
        while True:
            try:
                if sibling.ask("GET", "/health")[0] == 200:
                    break
            except OSError:
                sibling.connection = None
            assert time.monotonic() < until, "the daemon does not answer"
            time.sleep(0.05)
        template = sibling.made("/templates", {"name": "t"})["id"]
        session = sibling.made(
            "/sessions",
            {"template_id": template, "workspace_id": "w", "base_commit_oid": "c", "worktree_path": work},
        )["id"]

        def one_and_one():
            begin = time.monotonic()
            status, value = sibling.ask("POST", "/executions/repl", {"session_id": session, "input": "1+1"})
            return (time.monotonic() - begin) * 1000, status

        calm = [one_and_one()[0] for _ in range(200)]
        theirs = grower.made("/templates", {"name": "g", "engine": "cvm"})["id"]
        status, value = grower.ask("PATCH", f"/templates/{theirs}", {"limits": {"cpu_ms": 5000, "wall_ms": 30000}})
        assert status == 200, value
        program = grower.made("/programs", {"name": "grow", "source": GROW})["id"]
        runs, ended, stop = [], [], threading.Event()

        def start(client):
            body = {"program_id": program, "template_id": theirs}
            status, value = client.ask("POST", "/executions/program?wait=false", body)
            if status in (200, 201, 202):
                runs.append((value["id"], time.monotonic()))
            return status, value

        def keep_growing():
            """As many as there were: another one for each that has ended."""
            client, refused = Client(port, "grower"), {}
            alive = {}
            while not stop.is_set():
                while len(alive) < PROGRAMS and not stop.is_set():
                    status, value = start(client)
                    if status not in (200, 201, 202):
                        refused[(status, str(value)[:160])] = refused.get((status, str(value)[:160]), 0) + 1
                        time.sleep(0.2)
                        break
                    alive[value["id"]] = time.monotonic()
                for run in list(alive):
                    value = client.ask("GET", f"/executions/{run}")[1]
                    if "status" not in value:
                        # Deleted because of the quota.
                        ended.append(("deleted", value["code"], None, time.monotonic() - alive.pop(run), {"cpu_ms": 0, "duration_ms": 0}))
                    elif value["status"] not in ("running", "waiting"):
                        error = (value.get("error") or {})
                        took = time.monotonic() - alive.pop(run)
                        ended.append((value["status"], error.get("code"), error.get("reason"), took, value["metrics"]))
                time.sleep(0.05)
            if refused:
                print("refused starts:", refused)

        feeder = threading.Thread(target=keep_growing)
        feeder.start()
        waits, failures, sizes = [], {}, []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            took, status = one_and_one()
            waits.append(took)
            if status != 201 and status != 200:
                failures[status] = failures.get(status, 0) + 1
            sizes.append((size(database), size(database + "-wal")))
            time.sleep(0.005)
        stop.set()
        feeder.join()
        print(f"1+1 alone:   p50 {statistics.median(calm):.1f} ms, p99 {percentile(calm, .99):.1f}, max {max(calm):.1f}")
        print(
            f"1+1 beside {PROGRAMS} growing programs of another owner ({len(waits)} times): p50"
            f" {statistics.median(waits):.1f} ms, p99 {percentile(waits, .99):.1f}, max {max(waits):.1f};"
            f" failures {failures}"
        )
        print(f"database: at most {max(s[0] for s in sizes):.0f} MiB of {quota} MiB, its log {max(s[1] for s in sizes):.0f} MiB")
        kinds = {}
        for status, code, reason, took, metrics in ended:
            kinds.setdefault((status, code, reason), []).append((took, metrics["cpu_ms"], metrics["duration_ms"]))
        for kind, values in kinds.items():
            print(
                f"ended {kind}: {len(values)} times, after at most {max(v[0] for v in values):.1f} s,"
                f" cpu_ms at most {max(v[1] for v in values)}, duration_ms at most {max(v[2] for v in values)}"
            )
        deletions, others = [], []
        for run, _ in runs:
            begin = time.monotonic()
            status, value = grower.ask("DELETE", f"/executions/{run}")
            deletions.append((time.monotonic() - begin) * 1000)
            assert status in (200, 404), value
            others.append(one_and_one()[0])
        print(
            f"{len(deletions)} deletions: p50 {statistics.median(deletions):.0f} ms, max {max(deletions):.0f};"
            f" 1+1 between them: p99 {percentile(others, .99):.1f} ms"
        )
    finally:
        daemon.terminate()
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()


main()
