"""The command ``push``: upload of a study, a run or a data set, or the list of what would be uploaded."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from pretrain.model_push import model_repository
from probes.publication import Publication, publication
from probes.study.record import STUDY
from synthlang.errors import InputError
from synthlang.export import data_set_repository
from synthlang.hub_upload import Repository, Uploaded, hub, size_of, tried, upload
from synthlang.progress import Say
from synthlang.wording import plural

MANIFEST = "manifest.json"
"""Name of the file that marks a data set folder."""


def push(
    folder: Path,
    repo: str | None,
    to: str | None,
    say: Say,
    public: bool = False,
    partial: bool = False,
    dry_run: bool = False,
    api: Any | None = None,
) -> list[str]:
    """Upload a study, a run or a data set to the hub, and return the addresses of its repositories.

    For a study, the address of its collection comes last. With ``dry_run``, the list is empty.

    Args:
        folder: A study, a data set folder of derive, a finished run, or one export of a run.
        repo: The name of the repository (OWNER/NAME). It is required for all folders but a study.
        to: OWNER or OWNER/PREFIX of the repositories of a study. It is required for a study, and an error for any other
            folder.
        say: Function that receives lines of text for the user.
        public: True to make new repositories public.
        partial: True to leave out unfinished cells, damaged models and models without weights of a study.
        dry_run: True to list the files of the upload with their sizes, without use of the network.
        api: Object used in place of ``huggingface_hub.HfApi``.

    Raises:
        InputError: The names do not fit the folder, the folder is unfinished or damaged, or the upload fails.
    """
    if (folder / STUDY).is_file():
        plan = _study_plan(folder, repo, to, partial)
        return _said(plan, say) if dry_run else _pushed(plan, not public, say, api)
    repository = _repository(folder, repo, to, partial)
    if dry_run:
        for line in _lines(repository):
            say(line)
        return []
    done = upload(repository, not public, api)
    if done.deleted:
        say(_deletions(done))
    return [done.address]


def _study_plan(folder: Path, repo: str | None, to: str | None, partial: bool) -> Publication:
    """Return the plan of the publication of a study.

    Raises:
        InputError: ``to`` is missing, ``repo`` is given, or the study is unfinished or damaged.
    """
    if repo is not None:
        reason = "a study becomes several repositories, so one name does not suffice"
        hint = f"run: {_command(folder)} --to {to or repo}"
        raise InputError(reason, "REPO", hint=hint, code="no_effect")
    if to is None:
        reason = "a study becomes several repositories, whose owner is not named"
        hint = f"run: {_command(folder)} --to OWNER, or --to OWNER/PREFIX"
        raise InputError(reason, folder, hint=hint, code="missing")
    return publication(folder, to, partial)


def _repository(folder: Path, repo: str | None, to: str | None, partial: bool) -> Repository:
    """Return the repository of a data set or a model.

    Raises:
        InputError: An option of studies is given, ``repo`` is missing, or the folder is unfinished or damaged.
    """
    for option, given in (("--to", to is not None), ("--partial", partial)):
        if given:
            reason = f"the option is only for a study, but {folder} is not a study folder"
            hint = f"correct the folder, or leave the option out: {_command(folder)} {repo or 'OWNER/NAME'}"
            raise InputError(reason, option, hint=hint, code="no_effect")
    if repo is None:
        hint = f"run: {_command(folder)} OWNER/NAME"
        raise InputError("no repository is named", folder, hint=hint, code="missing")
    return (data_set_repository if (folder / MANIFEST).exists() else model_repository)(folder, repo)


def _command(folder: Path) -> str:
    return f"synthlang push {shlex.quote(str(folder))}"


def _said(plan: Publication, say: Say) -> list[str]:
    """List the repositories, their files and the parts that are left out, and return an empty list."""
    for repository in plan.repositories:
        for line in _lines(repository):
            say(line)
    models = plural(len(plan.repositories) - 1, "model")
    say(f"collection {plan.title!r} of {plan.owner}: {models} and the results")
    for what in plan.left_out:
        say(f"left out: {what}")
    size = decimal(sum(repository.size for repository in plan.repositories))
    say(f"repositories: {len(plan.repositories)}, of {size} together; nothing was uploaded")
    return []


def _lines(repository: Repository) -> Iterator[str]:
    files = repository.files
    yield f"{repository.kind} {repository.repo_id}: {plural(len(files), 'file')}, {decimal(repository.size)}"
    for path, content in files.items():
        yield f"  {path}  {decimal(size_of(content))}"
    for pattern in repository.complete:
        yield f"  other files on the hub that match {pattern} are deleted in the same commit"


def _deletions(done: Uploaded) -> str:
    return f"{done.address}: deleted files of an earlier version: {', '.join(done.deleted)}"


def _pushed(plan: Publication, private: bool, say: Say, api: Any | None) -> list[str]:
    """Upload all repositories, models first, and return their addresses and that of the collection.

    Files that the hub already has are skipped, so an interrupted push can be repeated.

    Raises:
        InputError: An upload fails.
    """
    hf: Any = hub() if api is None else api
    addresses = []
    for number, repository in enumerate(plan.repositories, start=1):
        done = upload(repository, private, hf)
        is_changed = done.added or done.deleted
        what = f"uploaded {len(done.added)} of {plural(len(repository.files), 'file')}" if is_changed else "unchanged"
        say(f"[{number}/{len(plan.repositories)}] {done.address}: {what}")
        if done.deleted:
            say(_deletions(done))
        addresses.append(done.address)
    place = f"hub collection {plan.title!r} of {plan.owner}"
    return [*addresses, tried(lambda: _joined(plan, private, hf), place)]


def _joined(plan: Publication, private: bool, hf: Any) -> str:
    """Add all repositories to the collection, which is made if it does not exist, and return its address."""
    collection = hf.create_collection(
        plan.title, namespace=plan.owner, description=plan.description, private=private, exists_ok=True
    )
    there = {(item.item_type, item.item_id) for item in collection.items}
    for repository in plan.repositories:
        if (repository.kind, repository.repo_id) not in there:
            hf.add_collection_item(collection.slug, repository.repo_id, repository.kind, exists_ok=True)
    return str(collection.url)
