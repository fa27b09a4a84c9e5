"""The command ``synthlang adjust``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

HELP = """Pull the words of sentence pairs together in a pretrained encoder and hold the rest in place.

MODEL is a Hugging Face name or folder, or a finished run; CONFIG names the sentence pairs with their word alignments
(by construction for a derived language, from a file, or by an aligner) and the loss. An unfinished adjustment in the
output folder goes on; the result is in its export/.
"""


def adjust_command(model: str | None, config_path: Path, out: Path, overrides: Sequence[str] = ()) -> int:
    """Adjust ``model`` (default: the one that the config names) by a YAML file, with progress; the exit code."""
    from pretrain.adjust.config import AdjustConfig
    from pretrain.adjust.run import DONE, adjust
    from pretrain.devices import process_state
    from pretrain.stopping import EXIT_CODE, Stopped, on_sigterm
    from synthlang.catalogue import load_yaml
    from synthlang.config import override, parse
    from synthlang.files import read_json
    from synthlang.progress import Display, silent, unheard

    data = override(load_yaml(config_path, "adjust"), overrides)
    config = parse(AdjustConfig, data if model is None else {**data, "model": model}, config_path)
    is_main = process_state().is_main_process
    with Display() as display, on_sigterm() as stop:
        report, say = (display.report, display.message) if is_main else (silent, unheard)
        try:
            adjust(config, out, report, say, stop)
        except Stopped as stopped:
            if is_main:
                display.message(f"stopped at step {stopped}, saved; run the same command to go on")
            return EXIT_CODE
        if is_main:
            done = read_json(out / DONE)
            for key, before in done["before"].items():
                display.message(f"distance of {key.replace('/', ' words, ')}: {before:.3f} → {done['after'][key]:.3f}")
            display.message(f"adjusted model: {out / 'export'}")
    return 0
