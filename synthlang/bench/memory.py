"""An export in a process of its own, and how much memory it and its workers take."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

INTERVAL = 0.05  # seconds between two looks
CODE = """
import json, sys, time
from pathlib import Path
from synthlang.export import export_language
from synthlang.language import parse_language
from synthlang.sources import open_source
source, language, folder, workers = sys.argv[1:]
start = time.perf_counter()
manifest = export_language(
    open_source(source), parse_language(language), Path(folder), source_name=source, workers=int(workers)
).manifest
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "words": sum(size["words"] for size in manifest["splits"].values())}))
"""


def measured_export(source: str, language: str, workers: int) -> dict[str, Any]:
    """Words, seconds, and the peak over time of the memory of all processes together, in MB.

    ``rss`` counts a page once in each process that shares it, ``pss`` once in all (Linux only, else None).
    """
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "out").open("w+") as out:
        command = [sys.executable, "-c", CODE, source, language, str(Path(folder) / "data"), str(workers)]
        process = subprocess.Popen(command, stdout=out)  # noqa: S603  our own interpreter and code
        rss, pss = _watch(process)
        if process.returncode:
            raise RuntimeError(f"the export ended with code {process.returncode}")
        out.seek(0)
        return {"workers": workers, **json.load(out), "peak_rss_mb": rss, "peak_pss_mb": pss}


def _watch(process: subprocess.Popen[bytes]) -> tuple[float, float | None]:
    import psutil

    peak: dict[str, float] = {"rss": 0.0, "pss": 0.0}
    while process.poll() is None:
        now = {"rss": 0.0, "pss": 0.0}
        try:
            family = [parent := psutil.Process(process.pid), *parent.children(recursive=True)]
        except psutil.Error:
            family = []
        for one in family:
            try:
                info = one.memory_full_info()
                now = {"rss": now["rss"] + info.rss, "pss": now["pss"] + getattr(info, "pss", 0.0)}
            except psutil.Error:  # it has just ended
                continue
        peak = {kind: max(value, now[kind] / 2**20) for kind, value in peak.items()}
        time.sleep(INTERVAL)
    return round(peak["rss"], 1), round(peak["pss"], 1) or None
