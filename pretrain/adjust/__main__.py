"""Entry point of ``accelerate launch [flags] -m pretrain.adjust CONFIG --out DIR [--model MODEL] [--set …]``."""

from __future__ import annotations

from pretrain.adjust.adjust_command import adjust_command
from pretrain.train import arguments_of, exit_code
from synthlang.files import user_path


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments, adjust the model and return the exit code.

    The exit code is 0, 2 for wrong input, 130 after Ctrl-C, or 143 after SIGTERM. Wrong options end the process with
    SystemExit.
    """
    parser = arguments_of("pretrain.adjust", "Adjust a model on word-aligned text.")
    parser.add_argument(
        "--out",
        type=user_path,
        required=True,
        metavar="PATH",
        help="Output folder. An unfinished adjustment continues.",
    )
    parser.add_argument(
        "--model", help="Finished run, model folder, or model name on Hugging Face (default: the model of the config)."
    )
    given = parser.parse_args(arguments)
    return exit_code(
        lambda given: adjust_command(given.model, given.config, given.out, given.set, given.smoke, given.threads), given
    )


if __name__ == "__main__":
    raise SystemExit(main())
