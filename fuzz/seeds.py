#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets (fuzz/seeds/TARGET) from the golden bytes of the protocol and the examples below.

Run it again after a change of the protocol; it replaces what it has written before. `.ci/long` uses the folders."""

import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = ROOT / "fuzz" / "seeds"
GOLDEN = {}
for line in (ROOT / "protocol/tests/golden.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        name, _, hexadecimal = line.partition(" ")
        GOLDEN[name] = bytes.fromhex(hexadecimal)


def of(kind):
    """The encodings of all variants of an enum."""
    return {name.split("::")[1]: value for name, value in GOLDEN.items() if name.startswith(kind + "::")}


def step(kind, content=b""):
    return bytes([kind]) + len(content).to_bytes(2, "little") + content


def write(target, name, content):
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name.lower()).write_bytes(content)


def session():
    # What else may happen: stored, not stored, a reply, a closed channel, an exit, cancel, close, an answer, a fork, its end, time.
    for name, message in of("FromWorker").items():
        write("session", name, b"\x02" + step(0, message) + step(10) + step(23, b"\x10\x27"))
    for name, reply in of("HostReply").items():
        call = of("FromWorker")["HostCall"]
        write("session", "reply-" + name, b"\x02" + step(0, call) + step(12, reply) + step(10))
    for number in range(9, 24):
        write("session", f"step-{number}", b"\x02" + step(number, b"x\0") + step(10) + step(23, b"\xff\xff"))
    write("session", "fork", b"\x01" + step(19, b"\0") + step(20, b"ab") + step(10) + step(9, b"1"))
    write("session", "file", b"\x01" + step(9, b"\0") + step(21, b"\0\0") + step(10) + step(0, of("FromWorker")["Done"]))


def program():
    started = of("FromDurable")["SmallCheckpoint"]
    for name, message in of("FromDurable").items():
        write("program", name, b"\0" + step(0, message) + step(11) + step(11))
    for number in range(8, 22):
        content = step(0, started) + step(11) + step(number, b"x\0") + step(11)
        write("program", f"step-{number}", b"\1" + content)


def broker():
    for which, kind in enumerate(["FromBroker", "ToBroker", "HostReply", "HostRequest"]):
        for name, message in of(kind).items():
            write("broker", f"{kind}-{name}", bytes([which]) + message)
    for name, request in of("FsRequest").items():
        write("broker", f"fs-{name}", b"\x03\x01" + request)


def control():
    hello = GOLDEN.get("ClientHello", b"")
    for name, frame in of("ClientFrame").items():
        write("control", "frame-" + name, step(2, frame))
        stream = b"".join(len(part).to_bytes(4, "little") + part for part in (hello, frame))
        write("control", "stream-" + name, step(0, stream))
    for kind in ("Op", "DurableOp"):
        prefix = b"" if kind == "Op" else GOLDEN["Op::Durable"][:1]
        for name, op in of(kind).items():
            write("control", f"{kind}-{name}", step(1, prefix + op))


REQUESTS = {
    "health": ("GET", "/health", ""),
    "template": ("POST", "/api/v1/templates", '{"name":"t","engine":"quickjs","settings":{"limits":{"cpu_ms":10}}}'),
    "capability": ("POST", "/api/v1/templates/t/capabilities", '{"kind":"fs","name":"read","config":{"paths":["a/**"]}}'),
    "session": ("POST", "/api/v1/sessions", '{"template_id":"t","workspace_id":"w","worktree_path":"/w"}'),
    "repl": ("POST", "/api/v1/sessions/s/repl", '{"input":"1","wait":true}'),
    "events": ("GET", "/api/v1/executions/e/events?after_seq=3&limit=5", ""),
    "program": ("POST", "/api/v1/programs", '{"name":"p","source":"CC(1)"}'),
    "run": ("POST", "/api/v1/programs/p/executions", '{"args":["a"],"env":{"A":"b"}}'),
    "import": ("POST", "/api/v1/imports", '[\n{"header":{"kind":"program"}}\n]'),
    "mcp": ("POST", "/mcp", '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
}


def rest_requests():
    for name, (method, path, body) in REQUESTS.items():
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += "Accept: application/json, text/event-stream\r\n"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        write("rest_requests", name, f"{head}{length}Connection: close\r\n\r\n{body}".encode())
    chunked = "POST /api/v1/templates HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    write("rest_requests", "chunked", chunked.encode())


def mcp():
    def call(method, params):
        return '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' % (method, params)

    for name, line in {
        "tools": call("tools/list", "{}"),
        "load": call("tools/call", '{"name":"load","arguments":{"name":"p","code":"CC(1)"}}'),
        "start": call("tools/call", '{"name":"start","arguments":{"name":"p","args":["a"]}}'),
        "task": call("tools/call", '{"name":"getTask","arguments":{}}'),
        "submit": call("tools/call", '{"name":"submitTask","arguments":{"result":"x"}}'),
        "eval": call("tools/call", '{"name":"session_eval","arguments":{"sessionId":"s","code":"1"}}'),
        "prompt": call("prompts/get", '{"name":"p","arguments":{}}'),
        "resource": call("resources/read", '{"uri":"vm-system://x"}'),
        "cancelled": '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        "batch": '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    }.items():
        write("mcp", name, b"\0" + line.encode())
        write("mcp", name + "-first", b"\1" + line.encode())


RECORDS = """{"header":{"kind":"execution","format":1,"writer":"test","exported_at":"2026-01-01T00:00:00.000Z"}}
{"program":{"name":"p"}}
{"version":{"version":3,"source":"CC('why?')","source_hash":"7aeb0ed0c2cf8c4b7ec95ed7b2d6f7a6b3a5f2b59b8d1f1ae1be9e0b6cf36b90","created_at":"2026-01-01T00:00:00.000Z","format":1,"code":"AQID"}}
{"execution":{"id":"there","status":"waiting","args":[],"env":{},"started_at":"2026-01-01T00:00:00.000Z","metrics":{}}}
{"checkpoint":{"seq":4,"at":"2026-01-01T00:00:00.000Z","cause":"pause"}}
{"task":{"prompt":"why?","attempts":0,"created_at":"2026-01-01T00:00:00.000Z","checkpoint":4}}
{"event":{"execution_id":"01010101-0101-0101-0101-010101010101","seq":1,"ts":"2026-01-01T00:00:00.000Z","type":"console","level":"log","text":"a"}}
{"page":{"page":0,"checkpoint":2,"bytes":"BwcH"}}"""


def archive():
    import hashlib

    right = hashlib.sha256(b"CC('why?')").hexdigest()
    lines = []
    for line in RECORDS.splitlines():
        if '"version":{' in line:
            line = line.replace(line.split('"source_hash":"')[1][:64], right)
        lines.append(line)
        write("archive", f"lines-{len(lines)}", b"\x03" + "\n".join(lines).encode())
    program = lines[0].replace("execution", "program"), lines[1], lines[2].replace(',"code":"AQID"', "")
    write("archive", "program", b"\x02" + "\n".join(program).encode())
    write("archive", "unsealed", b"\x83[\n" + ",\n".join(lines).encode() + b"\n]\n")


def policy():
    rows = {
        "fs-read": (0 | 1 << 2, "read", '{"paths":["data/**","*.csv"]}'),
        "fs-write": (1 | 1 << 2, "write", '{"paths":["data/out/**"]}'),
        "module-fs": (0, "fs", '{"read":["**"],"write":["a/**"],"max_calls":5,"max_file_kb":1}'),
        "module-exec": (1, "exec", '{"commands":["cat","sh"],"timeout_ms":5}'),
        "module-database": (0, "database", '{"read_only":true,"max_rows":5}'),
        "module-off": (2, "fs", "{}"),
        "global": (2 | 2 << 2, "setTimeout", "{}"),
        "env": (0 | 3 << 2, "HOME", '{"value":"x"}'),
        "net": (0 | 4 << 2, "example.org", "{}"),
    }
    for name, (kind, row, config) in rows.items():
        write("policy", name, step(kind, f"{row}\n{config}".encode()))
    write("policy", "all", b"".join(step(kind, f"{row}\n{config}".encode()) for kind, row, config in rows.values()))


def worktree():
    paths = ["a.js", "a/b/c.mjs", "up/secret.js", "a/up/secret.js", "out/deep", "file.js", "absolute/etc/passwd", "loop",
             "a/inside/secret.js", "../secret.js", "a/./../a.js", "hidden/secret.js"]
    lists = ["a\na.js\na/index.js", "a/b/c.mjs", "node_modules/m/index.js", "nothing\nup/secret.js\nfile.js", "hidden/secret.js\na.js",
             "../secret.js", "a/inside/secret.js", "node_modules/m"]
    for number, path in enumerate(paths):
        for which in (0, 1):
            write("worktree", f"path-{number}-{which}", bytes([which]) + path.encode())
    for number, candidates in enumerate(lists):
        for which in (2, 5, 8, 26, 254):
            write("worktree", f"candidates-{number}-{which}", bytes([which]) + candidates.encode())


if __name__ == "__main__":
    shutil.rmtree(SEEDS, ignore_errors=True)
    for target in (session, program, broker, control, rest_requests, mcp, archive, policy, worktree):
        target()
    print(sum(1 for _ in SEEDS.rglob("*") if _.is_file()), "files")
