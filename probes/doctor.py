"""The command ``synthlang doctor``, which prints a table of the required packages and a description of the machine."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from synthlang.distribution import NAME, install_command
from synthlang.errors import InputError
from synthlang.plugins import installed


def examine() -> bool:
    """Print the requirements, the install commands of missing ones, and facts about the machine.

    Returns:
        True if all required packages are installed in a required version. Packages of extras do not count.

    Raises:
        InputError: The program itself is not installed as a package.
    """
    console = Console()
    table = Table(title="synthlang doctor")
    for column in ("package", "required", "installed"):
        table.add_column(column)
    sound = True
    missing: dict[str, list[str]] = {}
    for requirement in map(Requirement, _requirements()):
        _, _, marker = str(requirement.marker or "").partition("extra ==")
        extra = marker.strip(" \"'") or None
        if extra == "dev":
            continue
        found = _version(requirement.name)
        fits = found is not None and requirement.specifier.contains(found, prereleases=True)
        sound = sound and (fits or extra is not None)
        needed = f"{requirement.specifier}" + (f" (extra {extra})" if extra else "")
        if not fits:
            missing.setdefault(install_command(extra) if extra else f"pip install '{requirement}'", []).append(
                requirement.name
            )
        table.add_row(requirement.name, needed, found or "missing")
    console.print(table)
    for command, names in missing.items():  # rich would read [parse] as markup
        console.print(f"to install {', '.join(names)}: {command}", soft_wrap=True, markup=False)
    lines = [f"python {platform.python_version()} · {platform.platform()} · {os.cpu_count()} cores"]
    if _version("torch"):
        import torch

        devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        lines.append(f"accelerators: {', '.join(devices) or 'none; training runs on the CPU'}")
    lines += [f"plugin, {told}" for told in installed()]
    lines.append(f"free disk here: {decimal(shutil.disk_usage(Path.cwd()).free)}")
    for line in lines:
        console.print(line, soft_wrap=True)
    return sound


def _requirements() -> list[str]:
    try:
        return requires(NAME) or []
    except PackageNotFoundError as error:
        reason = f"this copy is not installed as {NAME}"
        raise InputError(reason, hint=f"run {install_command()}", code="missing") from error


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
