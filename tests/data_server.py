"""A server on the loopback interface that speaks the parts of the hub that its client library uses, and plain HTTP."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TREE = re.compile(r"/api/datasets/([^/]+/[^/]+)/tree/([^/]+)(?:/(.*))?")
REVISION = re.compile(r"/api/datasets/([^/]+/[^/]+)/revision/(.+)")
RESOLVE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.*)")
BYTES = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class Fault:
    """What a server does once in place of an answer.

    Attributes:
        status: A status without a body.
        headers: Headers beside it.
        cut: Number of bytes of the body after which the connection ends.
        stall: True to wait there until the server stops.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    stall: bool = False


class DataServer:
    """Repositories of the hub, files at ``/url/HOST/PATH``, and the requests that came.

    Attributes:
        repos: Files of each repository by commit.
        files: Content of each path below ``/url/``.
        faults: Faults of each path, which are used up in their order.
        requests: Method, path and range of each request.
    """

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], dict[str, bytes]] = {}
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.requests: list[tuple[str, str, str]] = []
        self.stalled, self.stop = threading.Event(), threading.Event()
        self.address = ""

    def ranges(self, end: str) -> list[str]:
        """Ranges of the GET requests of paths with this end."""
        return [asked for method, path, asked in self.requests if method == "GET" and path.endswith(end)]

    def next_fault(self, path: str) -> Fault | None:
        for end, faults in self.faults.items():
            if faults and path.endswith(end):
                return faults.pop(0)
        return None


@contextmanager
def serving(server: DataServer | None = None, handler: type[BaseHTTPRequestHandler] | None = None) -> Iterator[Any]:
    """Run a server until the block ends."""
    data = server or DataServer()
    http = _Quiet(("127.0.0.1", 0), type("Bound", (handler or _Handler,), {"data": data}))
    data.address = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield data
    finally:
        data.stop.set()
        http.shutdown()
        http.server_close()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that are gone."""


class _Handler(BaseHTTPRequestHandler):
    data: DataServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.data.requests.append((self.command, path, self.headers.get("Range") or ""))
        fault = self.data.next_fault(path) if self.command == "GET" or "resolve" not in path else None
        if fault is not None and fault.status:
            self._send(fault.status, b"", fault.headers)
        elif found := TREE.fullmatch(path):
            asked = parse_qs(urlsplit(self.path).query).get("recursive", [""])
            self._tree(found[1], found[2], found[3], whole=asked[0].lower() == "true")
        elif found := REVISION.fullmatch(path):
            commits = [commit for repo, commit in self.data.repos if repo == found[1]]
            self._json({"id": found[1], "sha": commits[0]} if commits else None, "RepoNotFound")
        elif found := RESOLVE.fullmatch(path):
            content = self.data.repos.get((found[1], found[2]), {}).get(found[3])
            self._content(content, fault, {"X-Repo-Commit": found[2]})
        else:
            self._content(self.data.files.get(path.removeprefix("/url/")), fault, {})

    def _tree(self, repo: str, commit: str, folder: str | None, whole: bool) -> None:
        files = self.data.repos.get((repo, commit))
        if files is None:
            known = any(repo == one for one, _ in self.data.repos)
            self._json(None, "RevisionNotFound" if known else "RepoNotFound")
            return
        inside = {name: body for name, body in files.items() if not folder or name.startswith(f"{folder}/")}
        depth = folder.count("/") + 1 if folder else 0
        folders = {"/".join(name.split("/")[: depth + 1]) for name in inside if name.count("/") > depth}
        listed = {name: body for name, body in inside.items() if whole or name.count("/") == depth}
        tree = [{"type": "directory", "oid": "0" * 40, "path": name} for name in sorted(folders)]
        self._json([*tree, *(_described(name, body) for name, body in listed.items())])

    def _json(self, value: Any, error: str = "") -> None:
        if value is None:
            self._send(404, b"", {"X-Error-Code": error})
        else:
            self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _content(self, content: bytes | None, fault: Fault | None, headers: Mapping[str, str]) -> None:
        if content is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        about = {**headers, "ETag": etag, "Accept-Ranges": "bytes"}
        asked = BYTES.fullmatch(self.headers.get("Range") or "")
        if asked is None or self.headers.get("If-Range", etag) != etag:
            self._send(200, content, about, fault)
            return
        start, end = int(asked[1]), min(int(asked[2] or len(content)) + bool(asked[2]), len(content))
        if start >= len(content):
            self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        about["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        self._send(206, content[start:end], about, fault)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], fault: Fault | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault is None or fault.cut is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[: fault.cut])
        self.wfile.flush()
        if fault.stall:
            self.data.stalled.set()
            self.data.stop.wait(60)
        self.close_connection = True


def _described(name: str, body: bytes) -> dict[str, Any]:
    """Describe a file as the hub does: large files, here Parquet, have a SHA-256, others a Git id."""
    blob = hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
    lfs = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
    return {"type": "file", "oid": blob, "size": len(body), "path": name} | (
        {"lfs": lfs} if name.endswith(".parquet") else {}
    )
