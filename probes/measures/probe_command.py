"""The command ``synthlang probe``, which runs probes and writes their results."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from pretrain.config import PretrainConfig
from pretrain.run import store_of
from pretrain.threads import threads_for, use_threads
from probes.measures.over_steps import FILE as CHECKPOINTS
from probes.measures.over_steps import OverSteps, over_steps
from probes.measures.page import cka_against_retrieval, write_page
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.settings import InputConfig
from probes.measures.table import FORMAT, PROBES, ProbeConfig
from probes.models.names import is_run, model_path, natural_target
from probes.models.opening import open_pretrained
from probes.report.console import console_table
from synthlang import plugins
from synthlang.catalogue import load_yaml
from synthlang.config import load, override, parse
from synthlang.errors import InputError
from synthlang.files import atomic_folder, only_writer, read_json, user_path, write_json
from synthlang.fingerprint import fingerprint
from synthlang.progress import Display
from synthlang.references import Named, resolved
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.tasks import choose, open_task


def read_probe_config(path: Path | None, options: Mapping[str, Any], overrides: list[str]) -> ProbeConfig:
    """Read a config and replace its keys by the options of the command, and then by the overrides.

    Args:
        path: A file, or a name in the catalogue (default: an empty config).
        options: Values by key. The value None leaves a key unchanged.
        overrides: Texts of the form ``KEY=VALUE``.

    Raises:
        InputError: The file cannot be read, or a key or value is invalid.
    """
    data = {} if path is None else load_yaml(path, "probes")
    data |= {key: value for key, value in options.items() if value is not None}
    return parse(ProbeConfig, override(data, overrides), path or "probe")


def probe_names(text: str | None) -> list[str] | None:
    """Return the probes of a comma-separated list without duplicates, or None if ``text`` is None.

    ``all`` selects every probe.

    Raises:
        InputError: A probe is unknown.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in (*PROBES, "all"):
            hint = f"choose from {', '.join(PROBES)} and all"
            raise InputError(f"unknown probe {name!r}", "--probe", hint=hint, code="unknown")
    return list(PROBES) if "all" in names else list(dict.fromkeys(names))


def probe_command(model: str, config: ProbeConfig, out: Path | None, threads: int | None = None) -> Path:
    """Probe a model, write the results as in `measure`, and return their folder.

    Args:
        model: A run, a model folder or a name on Hugging Face.
        config: The settings.
        out: The folder for the results (default: ``probes`` in the folder of the run).
        threads: Number of threads (default: chosen by the size of the model).

    Raises:
        InputError: There is no such model, the model cannot read the language, ``out`` is None for a model that is not
            a run, or ``checkpoints`` is ``all`` for anything but one run. The error is also raised if the folder has
            other files or another process writes it, if ``maps.save`` is inside the folder, or if the probes cannot run
            (see `measure`).
        DiskError: The results cannot be written.
    """
    run = model_path(model)
    ours = is_run(run)
    folder = out or (run / "probes" if ours else None)
    if folder is None:
        told = "is not a run folder, so there is no default place for the results"
        raise InputError(told, model, hint="give a folder for the results (--out)", code="missing")
    _check_folder(folder)
    if config.checkpoints == "all" and not (ours and config.model2 is None):
        told = "is all, but only a run has checkpoints" if not ours else "is all, but there is a second model"
        raise InputError(told, keys="checkpoints", hint="set this key to selected", code="conflict")
    if config.maps.save is not None and user_path(config.maps.save).resolve().is_relative_to(folder.resolve()):
        told = f"{config.maps.save} is in the folder of the results ({folder}), which is deleted and written again"
        raise InputError(told, keys="maps.save", hint="choose another folder", code="conflict")
    console = Console()
    config = _without_words(_with_language(config, run) if ours else config, ours, console)
    pretrained = open_pretrained(model, config.language, config.natural, config.model2)
    use_threads(threads or threads_for(pretrained.model.shape.hidden))
    work = folder.parent / f".{folder.name}.work"  # keeps the word alignments until all probes are done
    with Display() as display, only_writer(folder):
        store = store_of(run) if ours else Store(work)
        given = ProbeInput(pretrained, config, run if ours else None, store, display.report)
        results, over = measure(given, folder, keep_partial=True)
        if work.exists():
            shutil.rmtree(work)
    for role in ROLES if config.reads_sentences else ():
        console.print(f"{given.name(role)}: {given.reads(role)}", markup=False, highlight=False)
    said = [(result.tables, result.notes) for result in results.values()]
    for tables, notes in (*said, ((), pretrained.notes), (over.tables(), over.notes)):
        for table in tables:
            console.print(console_table(table))
        for note in notes:
            console.print(f"note: {note}", markup=False, soft_wrap=True)
    console.print(f"written: {folder / 'probes.json'}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"report:  {(folder / 'probes.html').resolve()}", soft_wrap=True, markup=False, emoji=False)
    return folder


def _without_words(config: ProbeConfig, ours: bool, console: Console) -> ProbeConfig:
    """Remove the probe ``words`` and print a note, if it was not requested and word translations are not known."""
    known = (ours and config.model2 is None) or config.words.dictionary is not None
    if known or "probes" in config.model_fields_set:
        return config
    console.print(
        "note: the probe words is left out; to run it, set words.dictionary to a file of translations", markup=False
    )
    return config.model_copy(update={"probes": tuple(name for name in config.probes if name != "words")})


def measure(
    given: ProbeInput, folder: Path, told: InputConfig | None = None, keep_partial: bool = False
) -> tuple[dict[str, ProbeResult], OverSteps]:
    """Run the probes of a config, and write ``probes.json``, ``probes.html``, ``figures/`` and tables of single items.

    The tables of items are Parquet files. Only some probes have them (see ``ProbeResult.files``). With
    ``checkpoints: all``, the probes also run at all checkpoints of the run, and ``checkpoints.csv`` has their measures.

    Args:
        given: The input with the config.
        folder: The folder for the results. An earlier folder is deleted once the new one is complete.
        told: The settings to record (default: the config of ``given``).
        keep_partial: If a probe fails, write the results of the earlier probes. A stage of a study must not set this,
            because its partial files would be taken for a finished stage. If probes fail at another checkpoint only,
            the results of the selected checkpoint are always written.

    Returns:
        The result of each probe, and the results at all checkpoints, which are empty unless ``checkpoints`` is ``all``.

    Raises:
        InputError: A package or a text is missing, or the sentence pairs cannot be used (see ``ProbeInput.check``),
            which is checked before the first probe. The error is also raised if a probe fails.
        DiskError: The results or a file of a probe cannot be written.
    """
    given.check()
    found, over = dict[str, ProbeResult](), OverSteps(())
    try:
        _run_all(given, found)
        if given.config.checkpoints == "all":
            over = over_steps(given, found, _run_all)
    finally:
        if len(found) == len(given.config.probes) or (found and keep_partial):
            settings = (told or given.config).model_copy(update={"probes": tuple(found)})
            _write(folder, record(given, found, settings), found, given.config, over)
    return found, over


def _run_all(given: ProbeInput, found: dict[str, ProbeResult] | None = None) -> dict[str, ProbeResult]:
    """Run the probes of a config, and add their results to ``found`` one by one."""
    found = {} if found is None else found
    with given.reading():
        for name in given.config.probes:
            found[name] = run_probe(name, given)
    return found


def _write(
    folder: Path, values: dict[str, Any], found: Mapping[str, ProbeResult], config: InputConfig, over: OverSteps
) -> None:
    values = {**values, "checkpoints": over.to_json()} if over.steps else values
    with atomic_folder(folder, replace=True) as new:
        write_json(new / "probes.json", values)
        for figure in (*(figure for result in found.values() for figure in result.figures), *over.drawings()):
            figure.write(new / "figures")
        for name, table in (item for result in found.values() for item in result.files.items()):
            pq.write_table(table, new / name)
        if over.steps:
            over.write(new / CHECKPOINTS)
        write_page(new, values, found, config.table(), [over.section()] if over.steps else [])


def run_probe(name: str, given: ProbeInput) -> ProbeResult:
    """Run the probe ``name`` with its settings in the config of ``given``.

    Call this function within ``given.reading()``, which moves the models to a GPU if there is one.

    Raises:
        InputError: The probe cannot measure the models or the text (see the function of the probe).
        DiskError: The probe cannot write a file.
    """
    module, _, function = getattr(given.config, name).run.partition(":")
    try:
        found: ProbeResult = getattr(import_module(module), function)(given, given.report)
    except InputError as error:
        if any(error.place):
            raise
        raise error.inside(name) from error
    return found


def record(given: ProbeInput, found: Mapping[str, ProbeResult], told: InputConfig) -> dict[str, Any]:
    """Return the content of probes.json, except for the results at all checkpoints.

    Args:
        given: The input of the probes.
        found: The result of each probe by name.
        told: The settings to record.

    Raises:
        InputError: A text or items in the settings cannot be opened.
    """
    pretrained = given.pretrained
    # the fingerprint covers the content of sentence pairs, texts and items, but no paths
    kept = resolved(told, _content)
    del kept["pairs"], kept["model2"]
    kept.get("maps", {}).pop("save", None)
    kept |= plugins.parts("probes", told.probes)
    text = given.aligned.text.fingerprint if "aligned" in vars(given) else None
    languages = [reader.language.fingerprint for reader in (pretrained.source, pretrained.target)]
    name = fingerprint(
        "probes", format=FORMAT, settings=kept, model=pretrained.fingerprint, languages=languages, text=text
    )
    return {
        "format": FORMAT,
        "fingerprint": name,
        "model": pretrained.name,
        "parent": given.name("source"),
        "language": given.name("target"),
        "notes": pretrained.notes,
        "settings": told.model_dump(mode="json"),
        "parents": {"model": pretrained.fingerprint, "languages": languages, "text": text},
        "cka_against_retrieval": cka_against_retrieval(found, told.seed),
        "probes": {name: {**result.values, "notes": list(result.notes)} for name, result in found.items()},
    }


def _content(named: Named) -> Any:
    """Return the fingerprint of a text or of items, and the name of any other reference."""
    if named.kind == "source":
        return open_source(named.name).fingerprint
    if named.kind == "items":
        spec, split = choose(named.name)
        return [open_task(spec).fingerprint, split]
    return named.name


def _with_language(config: ProbeConfig, run: Path) -> ProbeConfig:
    """Set ``language`` and ``natural`` in the config if the compared language of the run is a natural one."""
    if config.natural or config.model2 is not None or not (run / "config.yaml").exists():
        return config
    found = natural_target(load(PretrainConfig, run / "config.yaml"), config.language)
    if found is None:
        return config
    filled = config.model_copy(update={"language": found, "natural": True})
    filled.check_pairs()
    return filled


def _check_folder(folder: Path) -> None:
    """Raise InputError if the folder contains anything but results of probes, since it is going to be replaced."""
    record, told = folder / "probes.json", ""
    if folder.exists() and not folder.is_dir():
        told = "is a file, not a folder"
    elif folder.exists() and any(folder.iterdir()) and not (record.exists() and "probes" in read_json(record)):
        told = "contains files that are not results of probes"
    if told:
        raise InputError(told, folder, hint="give another folder for the results (--out)", code="exists")
