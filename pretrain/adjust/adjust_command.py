"""The command ``synthlang adjust``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pretrain.stopping import Flag
    from synthlang.progress import Report, Say

HELP = """Pull aligned words together in a pretrained encoder. The words of one language are held near their place.

MODEL is a Hugging Face name or folder, or a finished run. CONFIG has the sentence pairs, their word alignments (by
construction for a derived language, from a file, or by an aligner) and the loss. An unfinished adjustment in the output
folder continues. The adjusted model is in export/ of the output folder.
"""


def adjust_command(
    model: str | None,
    config_path: Path,
    out: Path,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    threads: int | None = None,
) -> int:
    """Adjust a model with progress, and print the distances before and after.

    Args:
        model: A finished run, a model folder or a name on the hub (None: the model of the config).
        config_path: A YAML file, or a name of the catalogue.
        out: The output folder.
        overrides: New values as KEY=VALUE.
        smoke: True to try the adjustment with small settings, in ``OUT-smoke``.
        threads: Number of threads (None: OMP_NUM_THREADS, or chosen by model width and cores).

    Returns:
        The exit code: 0, or 143 after SIGTERM.

    Raises:
        InputError: The config is wrong, or the adjustment fails (see ``pretrain.adjust.run.adjust``).
    """
    from pretrain.adjust.config import AdjustConfig
    from pretrain.adjust.run import DONE, adjust
    from pretrain.hub import open_base
    from pretrain.threads import threads_for, use_threads
    from pretrain.train import with_progress
    from synthlang.catalogue import load_yaml
    from synthlang.config import override, parse
    from synthlang.files import read_json
    from synthlang.smoke import NOTE, smaller, smoke_path

    data = override(load_yaml(config_path, "adjust"), overrides)
    config = parse(AdjustConfig, data if model is None else {**data, "model": model}, config_path)

    use_threads(threads or threads_for(open_base(config.model).config.hidden_size))
    if smoke:
        config, out = smaller(config), smoke_path(out)

    def work(report: Report, say: Say, stop: Flag) -> list[str]:
        if smoke:
            say(NOTE)
        adjust(config, out, report, say, stop)
        done = read_json(out / DONE)
        moved = {key.replace("/", " words, "): (value, done["after"][key]) for key, value in done["before"].items()}
        lines = [f"distance of {name}: {before:.3f} → {after:.3f}" for name, (before, after) in moved.items()]
        return [*lines, f"adjusted model: {out / 'export'}"]

    return with_progress(work, config_path)
