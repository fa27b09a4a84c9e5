"""Entry point of ``accelerate launch [flags] -m pretrain.adjust CONFIG --out DIR [--model MODEL] [--set …]``."""

from __future__ import annotations

from pretrain.adjust.adjust_command import adjust_command
from pretrain.train import arguments_of, exit_code
from synthlang.files import user_path


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments, adjust the model and return the exit code.

    The exit codes are those of ``pretrain.train.main``.

    Args:
        arguments: The command line (default: the arguments of the process).

    Raises:
        SystemExit: An option is wrong (code 2), or ``--help`` is given (code 0).
    """
    parser = arguments_of("pretrain.adjust", "adjust", "Adjust a model on word-aligned text.")
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
