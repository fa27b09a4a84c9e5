"""The server of ``data_server``, to which one can also upload: repositories, large files, commits and collections."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests import data_server
from tests.data_server import DataServer

TOKEN = "hf_" + "secret" * 6
OF_REPO = re.compile(r"/api/(model|dataset)s/([^/]+/[^/]+)/(preupload|commit|tree|revision)/main")
INFO = re.compile(r"/api/(model|dataset)s/([^/]+/[^/]+)")
FILE = re.compile(r"/(?:(dataset)s/)?([^/]+/[^/]+)/resolve/([^/]+)/(.*)")
BATCH = re.compile(r"/(?:datasets/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch")
ITEMS = re.compile(r"/api/collections/(.+)/items")
LARGE = (".safetensors", ".parquet")
SHA = "c" * 40


@dataclass
class HubServer(DataServer):
    """A hub that keeps what is uploaded.

    Attributes:
        made: (kind, name) of each repository → whether it is private.
        content: Files of each repository.
        commits: Summary and added paths of each commit, in their order.
        deleted: Paths that commits deleted.
        collections: Slug → the collection.
        objects: Large files by their SHA-256.
        refused: Paths of which the next request is answered with status 500.
    """

    made: dict[tuple[str, str], bool] = field(default_factory=dict)
    content: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    commits: list[tuple[str, list[str]]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()


@contextmanager
def hub_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """Run a hub until the block ends. The library takes it for the hub, and ``TOKEN`` for the login."""
    with data_server.serving(HubServer(), _HubHandler) as server:
        assert isinstance(server, HubServer)
        for name, value in (("HF_ENDPOINT", server.address), ("HF_TOKEN", TOKEN)):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.address)
        monkeypatch.setattr("huggingface_hub._commit_api.is_xet_available", lambda: False)
        yield server


class _HubHandler(data_server._Handler):
    data: HubServer

    def do_PUT(self) -> None:  # noqa: N802
        body = self._body()
        self.data.objects[hashlib.sha256(body).hexdigest()] = body
        self._send(200, b"", {"ETag": '"x"'})

    def do_POST(self) -> None:  # noqa: N802
        path, body = unquote(urlsplit(self.path).path), self._body()
        self.data.requests.append(("POST", path, ""))
        if path in self.data.refused:
            self.data.refused.remove(path)
            self._send(400, b"{}", {})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, b"{}", {})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            assert json.loads(body)["content"].startswith("---\n")
            self._json({})
        elif found := OF_REPO.fullmatch(path):
            getattr(self, f"_{found[3]}")((found[1], found[2]), body)
        elif found := BATCH.fullmatch(path):
            self._batch(json.loads(body))
        elif path == "/api/collections":
            self._collection(json.loads(body))
        elif found := ITEMS.fullmatch(path):
            self._item(self.data.collections[found[1]], json.loads(body)["item"])
        else:
            self._send(404, b"{}", {})

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := OF_REPO.fullmatch(path):
            files = self.data.content[found[1], found[2]]
            described = [_described(name, body) for name, body in files.items()]
            self._json(described if found[3] == "tree" else {"id": found[2], "sha": SHA})
        elif found := INFO.fullmatch(path):
            self._json(
                {"id": found[2], "sha": SHA} if (found[1], found[2]) in self.data.content else None, "RepoNotFound"
            )
        elif found := FILE.fullmatch(path):
            content = self.data.content.get((found[1] or "model", found[2]), {}).get(found[4])
            self._content(content, None, {"X-Repo-Commit": SHA})
        elif path.startswith("/api/collections/"):
            self._json(self.data.collections.get(path.removeprefix("/api/collections/")), "NotFound")
        else:
            super()._answer()

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        kind = asked.get("type") or "model"
        url = f"{self.data.address}/{'datasets/' if kind == 'dataset' else ''}{name}"
        exists = (kind, name) in self.data.made
        self.data.made.setdefault((kind, name), bool(asked.get("private") or asked.get("visibility") == "private"))
        self.data.content.setdefault((kind, name), {".gitattributes": b"* text"})
        self._send(409 if exists else 200, json.dumps({"url": url}).encode(), {"Content-Type": "application/json"})

    def _preupload(self, repo: tuple[str, str], body: bytes) -> None:
        del repo
        names = [file["path"] for file in json.loads(body)["files"]]
        files = [
            {"path": n, "uploadMode": "lfs" if n.endswith(LARGE) else "regular", "shouldIgnore": False} for n in names
        ]
        self._json({"files": files})

    def _batch(self, asked: dict[str, Any]) -> None:
        def action(one: dict[str, Any]) -> dict[str, Any]:
            there = one["oid"] in self.data.objects
            href = f"{self.data.address}/objects/{one['oid']}"
            return {**one, **({} if there else {"actions": {"upload": {"href": href}}})}

        self._json({"transfer": "basic", "objects": [action(one) for one in asked["objects"]]})

    def _commit(self, repo: tuple[str, str], body: bytes) -> None:
        header, *lines = [json.loads(line) for line in body.splitlines()]
        files = {}
        for line in lines:
            value = line["value"]
            if line["key"] == "deletedFile":
                del self.data.content[repo][value["path"]]
                self.data.deleted.append(value["path"])
                continue
            large = line["key"] == "lfsFile"
            files[value["path"]] = self.data.objects[value["oid"]] if large else base64.b64decode(value["content"])
        self.data.content[repo].update(files)
        self.data.commits.append((header["value"]["summary"], sorted(files)))
        self._json({"commitUrl": f"{self.data.address}/{repo[1]}/commit/{SHA}", "commitOid": SHA})

    def _collection(self, asked: dict[str, Any]) -> None:
        slug = f"{asked['namespace']}/{re.sub('[^a-z0-9]+', '-', asked['title'].lower())}-0123456789abcdef01234567"
        exists = slug in self.data.collections
        about = {**asked, "slug": slug, "owner": {"name": asked["namespace"]}, "items": [], "position": 0}
        about |= {"lastUpdated": "2026-01-01T00:00:00.000Z", "theme": "blue", "upvotes": 0}
        self.data.collections.setdefault(slug, about)
        status = 409 if exists else 200
        self._send(status, json.dumps(self.data.collections[slug]).encode(), {"Content-Type": "application/json"})

    def _item(self, collection: dict[str, Any], item: dict[str, Any]) -> None:
        assert (item["type"], item["id"]) in self.data.made, "only what exists can be added"
        count = len(collection["items"])
        collection["items"].append({"_id": f"{count:024x}", "position": count, "type": item["type"], "id": item["id"]})
        self._json(collection)


def _described(name: str, body: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
    lfs = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
    large = {"lfs": lfs} if name.endswith(LARGE) else {}
    return {"type": "file", "oid": blob, "size": len(body), "path": name, **large}
