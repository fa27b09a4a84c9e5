"""The command ``push``: upload of a study, a run or a data set, or the list of what would be uploaded."""

from __future__ import annotations

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
from synthlang.wording import plural

MANIFEST = "manifest.json"
"""Name of the file that marks a data set folder."""


def push(
    folder: Path, repo: str | None, to: str | None, public: bool = False, partial: bool = False, dry_run: bool = False
) -> list[str]:
    """Upload a study, a run or a data set to the hub, and return the addresses of its repositories.

    The arguments, the result and the errors are those of ``probes.push``.
    """
    if (folder / STUDY).is_file():
        plan = _study_plan(folder, repo, to, partial)
        if not dry_run:
            return _pushed(plan, not public)
        print(*_planned(plan), sep="\n")
        return []
    repository = _repository(folder, repo, to, partial)
    if dry_run:
        print(*_lines(repository), sep="\n")
        return []
    return [_uploaded(repository, not public).address]


def _study_plan(folder: Path, repo: str | None, to: str | None, partial: bool) -> Publication:
    """Return the plan of the publication of a study.

    Raises:
        InputError: ``to`` is missing, ``repo`` is given, or the study is unfinished or damaged.
    """
    if repo is not None:
        reason = "a study becomes several repositories, so one name does not suffice"
        hint = f"leave {repo} out" + ("" if to else f", and add --to {repo}")
        raise InputError(reason, "REPO", hint=hint, code="no_effect")
    if to is None:
        reason = "a study becomes several repositories, whose owner is not named"
        raise InputError(reason, folder, hint="add --to OWNER, or --to OWNER/PREFIX", code="missing")
    return publication(folder, to, partial)


def _repository(folder: Path, repo: str | None, to: str | None, partial: bool) -> Repository:
    """Return the repository of a data set or a model.

    Raises:
        InputError: An option of studies is given, ``repo`` is missing, or the folder is unfinished or damaged.
    """
    for option, given in (("--to", to is not None), ("--partial", partial)):
        if given:
            reason = f"the option is only for a study, but {folder} is not a study folder"
            hint = "correct the folder, or leave the option out"
            hint += "" if repo else ", and add the name of a repository, OWNER/NAME"
            raise InputError(reason, option, hint=hint, code="no_effect")
    if repo is None:
        hint = "add the name of a repository, OWNER/NAME"
        raise InputError("no repository is named", folder, hint=hint, code="missing")
    return (data_set_repository if (folder / MANIFEST).exists() else model_repository)(folder, repo)


def _planned(plan: Publication) -> Iterator[str]:
    """Yield lines on the repositories of a study, their files and the parts that are left out."""
    for repository in plan.repositories:
        yield from _lines(repository)
    models = plural(len(plan.repositories) - 1, "model")
    yield f"collection {plan.title!r} of {plan.owner}: {models} and the results"
    yield from (f"left out: {what}" for what in plan.left_out)
    size = decimal(sum(repository.size for repository in plan.repositories))
    yield f"repositories: {len(plan.repositories)}, of {size} together; nothing was uploaded"


def _lines(repository: Repository) -> Iterator[str]:
    files = repository.files
    yield f"{repository.kind} {repository.repo_id}: {plural(len(files), 'file')}, {decimal(repository.size)}"
    for path, content in files.items():
        yield f"  {path}  {decimal(size_of(content))}"
    for pattern in repository.complete:
        yield f"  other files on the hub that match {pattern} are deleted in the same commit"


def _uploaded(repository: Repository, private: bool, api: Any | None = None) -> Uploaded:
    """Upload a repository, and print the files of an earlier version that were deleted."""
    done = upload(repository, private, api)
    if done.deleted:
        print(f"{done.address}: deleted files of an earlier version: {', '.join(done.deleted)}")
    return done


def _pushed(plan: Publication, private: bool) -> list[str]:
    """Upload all repositories, models first, and return their addresses and that of the collection.

    Files that the hub already has are skipped, so an interrupted push can be repeated.

    Raises:
        InputError: An upload fails.
    """
    hf, addresses = hub(), []
    for number, repository in enumerate(plan.repositories, start=1):
        done = _uploaded(repository, private, hf)
        is_changed = done.added or done.deleted
        what = f"uploaded {len(done.added)} of {plural(len(repository.files), 'file')}" if is_changed else "unchanged"
        print(f"[{number}/{len(plan.repositories)}] {done.address}: {what}")
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
