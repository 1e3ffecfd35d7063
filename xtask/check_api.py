#!/usr/bin/env python3
"""Asks the running binary everything its API document allows, and much that it does not, as other people's tools read it.

    check_api.py prepare VENV     installs schemathesis into VENV, once
    check_api.py run VENV BINARY  starts BINARY on files of its own and lets schemathesis at it, as a user and as an operator

What it looks for: an answer of 500 or above, a status, a header, a content type or a body that the document does not describe, a method
that is not refused, and a route that answers without the token it asks for. Both runs together take less than three minutes. A run that
ends before it has asked for every operation says which it never reached, and fails: nothing is known about those.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# The newest that was tried. A newer one may look for more, and that should be seen by whoever changes this line.
SCHEMATHESIS = "4.32.5"

# Bounds of one run, whichever is reached first.
EXAMPLES_PER_ROUTE = 20
SECONDS = 75

# A request that fits the schema may still be refused, such as for a seat that was sold, and one with a member too many is accepted: older
# clients send some.
NOT_CHECKED = "positive_data_acceptance,negative_data_rejection"

# Answers that do not end; the crates that serve them read them.
ENDLESS = "/live/"

# One path takes every method, also those that no document can name; the crates that serve it ask with them.
SETTINGS = """
[[operations]]
include-path = "/edge/check"
checks.unsupported_method.enabled = false
"""

# A line of `/metrics` that counts the requests of one route.
COUNTED = re.compile(r'^urr_http_requests_total\{(?=.*route="([^"]*)")(?=.*method="([^"]*)").*\} (\d+)$', re.MULTILINE)

PASSWORD = "correct horse battery staple"
ADMIN = "boss@example.com"


def prepare(venv):
    """Installs schemathesis, unless it is there."""
    done = venv / f"schemathesis-{SCHEMATHESIS}"
    if done.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"schemathesis=={SCHEMATHESIS}"], check=True)
    done.touch()


def ask(url, body=None):
    """One request; the answer as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


class Server:
    """The binary, with accounts to test with, on files that go when it ends."""

    def __init__(self, binary, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.binary, self.folder, self.url = binary, folder, f"http://{address}"
        # One client asks thousands of questions, so nobody is counted.
        settings = {"limits.enabled": "false", "queue.guard": "false", "admin.email": ADMIN, "admin.password": PASSWORD}
        flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
        self.log = open(folder / "log", "wb")
        command = [binary, "serve", "--listen", address, "--data-dir", folder / "data", *flags]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=self.clean_env())

    @staticmethod
    def clean_env():
        return {name: value for name, value in os.environ.items() if not name.startswith("URR_")}

    def ready(self):
        for _ in range(300):
            try:
                return ask(f"{self.url}/health/ready")
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        raise SystemExit(f"the server is not ready:\n{(self.folder / 'log').read_text()}")

    def token(self, user, role):
        """A token that no request can end: no session belongs to it."""
        command = [self.binary, "token", "--user", user, "--role", role, "--data-dir", self.folder / "data"]
        said = subprocess.run(command, check=True, capture_output=True, text=True, env=self.clean_env())
        return said.stdout.strip()

    def tokens(self):
        agreements = [{"type": kind, "agreed": True} for kind in ("SERVICE", "PRIVACY")]
        new = {"email": "minji@example.com", "password": PASSWORD, "name": "Minji", "agreements": agreements}
        user = ask(f"{self.url}/api/auth/register", new)["user"]["id"]
        admin = ask(f"{self.url}/api/auth/login", {"email": ADMIN, "password": PASSWORD})["user"]["id"]
        return {"user": self.token(user, "user"), "operator": self.token(admin, "admin")}

    def counts(self):
        """How often each operation was asked for, as the server counts."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        counts = {}
        for route, method, count in COUNTED.findall(text):
            operation = (method, route.replace("{*", "{"))
            counts[operation] = counts.get(operation, 0) + int(count)
        return counts

    def operations(self):
        """Every operation of the API document whose answer ends."""
        paths = ask(f"{self.url}/api/openapi.json")["paths"]
        listed = [(method.upper(), path) for path, methods in paths.items() for method in methods]
        return [operation for operation in listed if not re.search(ENDLESS, operation[1])]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        ended = self.process.wait(timeout=40)
        self.log.close()
        return ended


def attack(server, venv, who, token):
    """One run. False if something was found."""
    print(f"--- as {who}", flush=True)
    before = server.counts()
    command = [
        venv / "bin" / "st", "run", f"{server.url}/api/openapi.json",
        "--phases", "examples,coverage,fuzzing",
        "--max-examples", str(EXAMPLES_PER_ROUTE), "--max-time", str(SECONDS), "--request-timeout", "15",
        "--exclude-checks", NOT_CHECKED, "--suppress-health-check", "all", "--continue-on-failure",
        "--header", f"Authorization: Bearer {token}",
        # A page of our own: some requests carry a cookie, and without an origin those are refused before anything else.
        "--header", f"Origin: {server.url}",
        "--exclude-path-regex", ENDLESS,
        "--warnings", "off",
    ]  # fmt: skip
    found_nothing = subprocess.run(command, cwd=server.folder).returncode == 0
    after = server.counts()
    missed = [one for one in server.operations() if after.get(one, 0) == before.get(one, 0)]
    for method, path in missed:
        print(f"never reached as {who}: {method} {path}", flush=True)
    return found_nothing and not missed


def run(venv, binary):
    with tempfile.TemporaryDirectory() as folder:
        # schemathesis runs in this folder, and reads it there.
        pathlib.Path(folder, "schemathesis.toml").write_text(SETTINGS)
        server = Server(binary, pathlib.Path(folder))
        try:
            server.ready()
            good = [attack(server, venv, who, token) for who, token in server.tokens().items()]
        finally:
            ended = server.stop()
        if ended != 0:
            print(f"the server ended with {ended}:\n{(server.folder / 'log').read_text()}")
        return all(good) and ended == 0


if __name__ == "__main__":
    paths = [pathlib.Path(path).absolute() for path in sys.argv[2:]]
    if sys.argv[1:2] == ["prepare"] and len(paths) == 1:
        prepare(*paths)
    elif sys.argv[1:2] == ["run"] and len(paths) == 2:
        sys.exit(0 if run(*paths) else 1)
    else:
        sys.exit(__doc__)
