"""What ``synthlang probe`` does: every probe in turn, then probes.json, the figures and one page for readers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from pretrain.config import PretrainConfig
from pretrain.run import store_of
from pretrain.threads import threads_for, use_threads
from probes.measures.page import cka_against_retrieval, write_page
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.settings import InputConfig
from probes.measures.table import FORMAT, ProbeConfig
from probes.models.names import derived_numbers, is_run, model_path
from probes.models.opening import open_pretrained
from probes.report.console import console_table
from synthlang import plugins
from synthlang.catalogue import load_yaml
from synthlang.config import load, override, parse
from synthlang.errors import InputError
from synthlang.files import atomic_folder, only_writer, read_json, user_path, write_json
from synthlang.fingerprint import fingerprint
from synthlang.progress import Display
from synthlang.references import resolved
from synthlang.store import Store


def read_probe_config(path: Path | None, options: Mapping[str, Any], overrides: list[str]) -> ProbeConfig:
    """The config of a YAML file with the options of the command on top, then ``--set``."""
    data = {} if path is None else load_yaml(path, "probes")
    data |= {key: value for key, value in options.items() if value is not None}
    return parse(ProbeConfig, override(data, overrides), path or "probe")


def probe_names(text: str | None, config: type[InputConfig] = ProbeConfig) -> list[str] | None:
    """``a,b`` as names, ``all`` for every probe; None where the option is not given. InputError for other names."""
    if text is None:
        return None
    names, table = [name.strip() for name in text.split(",")], config.table()
    for name in names:
        if name not in (*table, "all"):
            raise InputError(f"--probe {name}: there is {', '.join(table)}, and all")
    return list(table) if "all" in names else list(dict.fromkeys(names))


def probe_command(model: str, config: ProbeConfig, out: Path | None, threads: int | None = None) -> Path:
    """Probe a model; writes ``probes.json``, ``figures/`` and ``probes.html`` in the folder, which it returns."""
    run = model_path(model)
    ours = is_run(run)
    folder = out or (run / "probes" if ours else None)
    if folder is None:
        found = "is no run folder" if run.exists() else "is no folder; if it is a model of Hugging Face"
        raise InputError(f"{model} {found}: name the folder of the results with --out DIR")
    _check_folder(folder)
    if config.maps.save is not None and user_path(config.maps.save).resolve().is_relative_to(folder.resolve()):
        raise InputError("maps.save: lies in the folder of the results, which is replaced; name another one", folder)
    console = Console()
    config = _without_words(_with_language(config, run) if ours else config, ours, console)
    pretrained = open_pretrained(model, config.language, config.natural, config.model2)
    use_threads(threads or threads_for(pretrained.model.shape.hidden))
    work = folder.parent / f".{folder.name}.work"  # where what an aligner finds is kept until all is done
    with Display() as display, only_writer(folder):
        store = store_of(run) if ours else Store(work)
        given = ProbeInput(pretrained, config, run if ours else None, store, display.report)
        results = measure(given, folder)
        if work.exists():
            shutil.rmtree(work)
    for result in (*results.values(), ProbeResult({}, notes=pretrained.notes)):
        for table in result.tables:
            console.print(console_table(table))
        for note in result.notes:
            console.print(f"note: {note}", markup=False, soft_wrap=True)
    console.print(f"written: {folder / 'probes.json'}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"report:  {(folder / 'probes.html').resolve()}", soft_wrap=True, markup=False, emoji=False)
    return folder


def _without_words(config: ProbeConfig, ours: bool, console: Console) -> ProbeConfig:
    """Where no probe was named and nothing says which words are translations, the others."""
    known = (ours and config.model2 is None) or config.words.dictionary is not None
    if known or "probes" in config.model_fields_set:
        return config
    console.print("note: words is left out: name words.dictionary, a file of translations", markup=False)
    return config.model_copy(update={"probes": tuple(name for name in config.probes if name != "words")})


def measure(given: ProbeInput, folder: Path, told: InputConfig | None = None) -> dict[str, ProbeResult]:
    """Run the probes of a config and write ``probes.json``, ``figures/`` and ``probes.html``.

    ``told`` are the settings as the record has them (default: those of ``given``). Results that were in the folder are
    replaced, all at once.
    """
    found: dict[str, ProbeResult] = {}
    with given.reading():
        for name in given.config.probes:
            found[name] = run_probe(name, given)
    values = record(given, found, told)
    with atomic_folder(folder, replace=True) as new:
        write_json(new / "probes.json", values)
        for figure in (figure for result in found.values() for figure in result.figures):
            figure.write(new / "figures")
        write_page(new, values, found, given.config.table())
    return found


def run_probe(name: str, given: ProbeInput) -> ProbeResult:
    """What one probe finds; within ``given.reading()``."""
    module, _, function = getattr(given.config, name).run.partition(":")
    found: ProbeResult = getattr(import_module(module), function)(given, given.report)
    return found


def record(given: ProbeInput, found: Mapping[str, ProbeResult], told: InputConfig | None = None) -> dict[str, Any]:
    """The content of probes.json; ``told`` as in ``measure``."""
    pretrained, config = given.pretrained, told or given.config
    settings = config.model_dump(mode="json")
    # where maps are kept does not matter, nor where sentence pairs are: what these hold does
    kept = resolved(config, lambda named: named.name)
    del kept["pairs"], kept["model2"]
    kept.get("maps", {}).pop("save", None)
    kept |= plugins.parts("probes", config.probes)
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
        "settings": settings,
        "parents": {"model": pretrained.fingerprint, "languages": languages, "text": text},
        "cka_against_retrieval": cka_against_retrieval(found, config.seed),
        "probes": {name: {**result.values, "notes": list(result.notes)} for name, result in found.items()},
    }


def _with_language(config: ProbeConfig, run: Path) -> ProbeConfig:
    """With what is known of a run's languages: which one is asked for if none is named, and whether it is natural.

    InputError where sentence pairs are needed that have to be named.
    """
    if config.natural or config.model2 is not None or not (run / "config.yaml").exists():
        return config
    pretraining = load(PretrainConfig, run / "config.yaml")
    derived, names = derived_numbers(pretraining), [language.name for language in pretraining.all_languages[1:]]
    asked = config.language
    if asked is None and not derived and len(names) == 1:
        asked = names[0]
    if asked is None and not derived and names:
        raise InputError(f"the run has several natural languages: name one with --language ({', '.join(names)})", run)
    if asked not in names or asked in derived:
        return config
    if config.reads_sentences and not any(config.pairs.values()):
        raise InputError(
            f"{asked} is not derived from {pretraining.all_languages[0].name}, so nothing is aligned by construction: "
            "name sentence pairs (pairs, in --config or by --set), or ask for word embeddings only (--probe words)"
        )
    return config.model_copy(update={"language": asked, "natural": True})


def _check_folder(folder: Path) -> None:
    """InputError for a folder that holds something other than the results of probes."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("is a file; name a folder with --out", folder)
    record = folder / "probes.json"
    if any(folder.iterdir()) and not (record.exists() and "probes" in read_json(record)):
        raise InputError("holds something other than results of probes; name another folder with --out", folder)
