#!/usr/bin/env python3
"""Tests the running binary against its API document with schemathesis.

    check_api.py prepare VENV     installs schemathesis into VENV, once
    check_api.py run VENV BINARY  starts BINARY on temporary files and tests it as user and as admin

It fails on a 5xx response; on a status, header, content type or body that the document does not
describe; on an undocumented method that is accepted; and on a route that ignores a missing token.
Both runs together take less than three minutes. A run that ends before it has reached every
operation lists the missing ones and fails.
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

# The newest version that was tested. A newer one may check more: read its findings when changing
# this.
SCHEMATHESIS = "4.32.5"

# Limits of one run, whichever is reached first.
EXAMPLES_PER_ROUTE = 20
SECONDS = 75

# A request that fits the schema may still be refused (a sold seat), and unknown fields are
# accepted, because older clients send some.
NOT_CHECKED = "positive_data_acceptance,negative_data_rejection"

# Responses that do not end; tests of the crates that serve them cover them.
ENDLESS = "/live/"

# A path that accepts every method, even undocumentable ones; tests of its crate cover them.
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
    """Installs schemathesis if it is missing."""
    done = venv / f"schemathesis-{SCHEMATHESIS}"
    if done.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"schemathesis=={SCHEMATHESIS}"], check=True)
    done.touch()


def ask(url, body=None):
    """Sends one request and returns the JSON response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


class Server:
    """The binary with test accounts, on temporary files."""

    def __init__(self, binary, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.binary, self.folder, self.url = binary, folder, f"http://{address}"
        # One client sends thousands of requests, so rate limits are off.
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
        """A token without a session, so that no request can revoke it."""
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
        """The number of requests per operation, from the server's metrics."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        counts = {}
        for route, method, count in COUNTED.findall(text):
            operation = (method, route.replace("{*", "{"))
            counts[operation] = counts.get(operation, 0) + int(count)
        return counts

    def operations(self):
        """Every operation of the API document except endless streams."""
        paths = ask(f"{self.url}/api/openapi.json")["paths"]
        listed = [(method.upper(), path) for path, methods in paths.items() for method in methods]
        return [operation for operation in listed if not re.search(ENDLESS, operation[1])]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        ended = self.process.wait(timeout=40)
        self.log.close()
        return ended


def attack(server, venv, who, token):
    """One run. Returns False if there are findings."""
    print(f"--- as {who}", flush=True)
    before = server.counts()
    command = [
        venv / "bin" / "st", "run", f"{server.url}/api/openapi.json",
        "--phases", "examples,coverage,fuzzing",
        "--max-examples", str(EXAMPLES_PER_ROUTE), "--max-time", str(SECONDS), "--request-timeout", "15",
        "--exclude-checks", NOT_CHECKED, "--suppress-health-check", "all", "--continue-on-failure",
        "--header", f"Authorization: Bearer {token}",
        # Same origin: requests with a cookie are refused without one.
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
        # schemathesis runs in this folder and reads the file from it.
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
