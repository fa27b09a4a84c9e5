"""Downloads from addresses: resumed after any interruption, tried again if the server is busy, and checked.

A download is first ``NAME.part``, and ``NAME.part.json`` holds the size and the version (ETag) of the whole file. If
the server has another version when the download is resumed, it sends the whole file, which replaces the part. The
proxies are read from the environment (HTTPS_PROXY, NO_PROXY).
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from synthlang import __version__
from synthlang.data.sources import UrlFile
from synthlang.errors import Code, InputError
from synthlang.files import writing
from synthlang.fingerprint import sha256_file

TRIES = 6
"""Number of failures in a row, without a byte between them, after which a download fails."""
WAIT, LONGEST_WAIT = 1.0, 120.0
"""Seconds before the second try, and the longest wait in seconds. The wait doubles with each try."""
TIMEOUT = 60.0
BLOCK = 1 << 18
AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, *(code for code in HTTPStatus if code >= 500)}
RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
PAGES = (b"<!doctype html", b"<html")
"""Beginnings of web pages, in lower case. No data set of the catalogue begins like this."""
LOST = (http.client.HTTPException, OSError)
"""Errors that a broken connection raises."""
RESUME = "run the same command again to continue"
Count = Callable[[int], None]


def size_at(url: str) -> int | None:
    """Return the size in bytes of the file at an address, or None if the server does not answer or state the size."""
    try:
        with _open(url, {}, "HEAD") as answer:
            return _whole(answer.headers.get("Content-Length"))
    except LOST:
        return None


def download(file: UrlFile, url: str, target: Path, count: Count) -> None:
    """Download a file to ``target``. An interrupted download continues where it stopped.

    Args:
        file: The file.
        url: Address of the file, which may be that of a mirror.
        target: The path to write.
        count: Called with the number of bytes of each received block, and of a part from an earlier call. The number is
            negative if a part is discarded.

    Raises:
        InputError: The server refuses, the connection fails TRIES times in a row, or the content differs from the
            checksum or is a web page.
        DiskError: The file cannot be written.
    """
    part = target.with_name(f"{target.name}.part")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
    count(part.stat().st_size)
    failures = 0
    while True:
        before = part.stat().st_size
        try:
            if _fetch(file, url, part, count):
                break
            error: Exception | None = None
        except HTTPError as problem:
            if problem.code not in AGAIN:
                raise _refused(url, problem.code) from problem
            error = problem
        except LOST as problem:
            error = problem
        failures = 1 if part.stat().st_size > before else failures + 1
        if failures >= TRIES:
            raise _gave_up(url, error) from error
        time.sleep(_pause(error, failures))
    _finish(file, url, part, target)


def _fetch(file: UrlFile, url: str, part: Path, count: Count) -> bool:
    """Append the missing bytes to a part, and return whether the part is complete."""
    have, known = part.stat().st_size, _known(part)
    if have and have == known.get("size"):
        return True
    headers = {}
    if have or file.first:
        headers["Range"] = f"bytes={have}-{file.first - 1 if file.first else ''}"
    if have and known.get("version"):
        headers["If-Range"] = known["version"]
    try:
        with _open(url, headers) as answer:
            found = RANGE.fullmatch(answer.headers.get("Content-Range") or "")
            start = int(found[1]) if answer.status == HTTPStatus.PARTIAL_CONTENT and found else 0
            if start != have:
                count(-have)
                _cut(part)
                have = 0
            total = _whole(found[2]) if found else _whole(answer.headers.get("Content-Length"))
            size = total if file.first is None or total is None else min(total, file.first)
            _remember(part, size, answer.headers.get("ETag"))
            return _copy(answer, part, size, count)
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not have:
            raise
        count(-have)
        _cut(part)
        return False


def _copy(answer: Any, part: Path, size: int | None, count: Count) -> bool:
    """Append the body of an answer to a part, up to ``size`` bytes in all, and return whether the part is complete."""
    done = part.stat().st_size
    with writing(part), part.open("ab", buffering=0) as handle:  # a kill loses nothing that came
        while size is None or done < size:
            try:
                block = answer.read1(BLOCK if size is None else min(BLOCK, size - done))
            except LOST:  # what came is kept
                return False
            if not block:
                break
            handle.write(block)
            done += len(block)
            count(len(block))
    if size is None:
        _remember(part, done, None)
    return size is None or done == size


def _open(url: str, headers: Mapping[str, str], method: str = "GET") -> Any:
    about = {"User-Agent": f"synthlang/{__version__}", "Accept-Encoding": "identity", **headers}
    request = Request(url, headers=about, method=method)  # noqa: S310  the catalogue has only http and https
    return urlopen(request, timeout=TIMEOUT)  # noqa: S310


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _record(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _known(part: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        known = json.loads(_record(part).read_bytes())
        if isinstance(known, dict):
            return known
    return {}


def _remember(part: Path, size: int | None, version: str | None) -> None:
    with writing(part):
        _record(part).write_text(json.dumps({"size": size, "version": version}), "utf-8")


def _cut(part: Path) -> None:
    with writing(part):
        part.write_bytes(b"")


def _pause(error: Exception | None, failures: int) -> float:
    """Return the seconds to wait, which a server may prescribe."""
    wished = error.headers.get("Retry-After") if isinstance(error, HTTPError) and error.headers else None
    if wished is None:
        return min(WAIT * 2.0 ** (failures - 1), LONGEST_WAIT)
    if wished.strip().isdigit():
        return min(float(wished), LONGEST_WAIT)
    try:
        return min(max(parsedate_to_datetime(wished).timestamp() - time.time(), 0.0), LONGEST_WAIT)
    except ValueError:
        return WAIT


def _finish(file: UrlFile, url: str, part: Path, target: Path) -> None:
    """Check the checksum of a complete download, or else that it is not a web page, and rename it to its target."""
    reason = ""
    if file.sha256 is not None and (found := sha256_file(part)) != file.sha256:
        reason = f"the SHA-256 of the download is {found}, not {file.sha256}"
        hint = "run the same command again; if the file has changed, name a mirror with the former file (--from)"
    elif file.sha256 is None and _start(part).startswith(PAGES):
        reason = "the download is a web page (HTML) in place of the file"
        hint = "check whether the network or the proxy asks for a login in a browser, and run the same command again"
    with writing(target):
        part.unlink() if reason else part.replace(target)
        _record(part).unlink(missing_ok=True)
    if reason:
        raise InputError(reason, url, hint=hint, code="damaged")


def _start(path: Path) -> bytes:
    with path.open("rb") as handle:
        return handle.read(64).lstrip().lower()


def _refused(url: str, code: int) -> InputError:
    """Return the error for an answer that another try would not change."""
    kind: Code = "missing" if code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE) else "failed"
    if kind == "missing":
        reason, hint = "does not exist", "obtain the file elsewhere, and name a mirror with this file (--from)"
    elif code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        reason, hint = (
            "needs a permission",
            "accept the terms in a browser, download the file there, and name a mirror with this file (--from)",
        )
    else:
        reason, hint = "is refused by the server", f"wait, then {RESUME}"
    return InputError(f"{reason} (HTTP {code})", url, hint=hint, code=kind)


def _gave_up(url: str, error: Exception | None) -> InputError:
    if isinstance(error, HTTPError):
        reason = f"the server did not send the file (HTTP {error.code})"
        return InputError(reason, url, hint=f"wait, then {RESUME}", code="failed")
    why = getattr(error, "reason", None) or error or "the connection ends too early"
    hint = f"check the connection and the proxy (HTTPS_PROXY), and {RESUME}; without a network, use --from FOLDER"
    return InputError(f"cannot be downloaded: {why}", url, hint=hint, code="failed")
